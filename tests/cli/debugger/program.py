"""The program that the debugger's tests step through, and the module that it imports."""

PROGRAM = """\
import { scale } from "lib"

let factor = 3

fn total(xs) {
  var sum = 0
  for x in xs {
    let part = scale(x, factor)
    sum = sum + part
  }
  return sum
}

pipeline main(task) {
  let xs = [1, 2]
  let t = total(xs)
  println("total ${t}")
}
"""
LIBRARY = """\
pub fn scale(x, by) {
  let y = x * by

  return y
}
"""
