"""What each code means, with a wrong and a right program: the text of `harnpy explain`. Spec: 09 §4.4."""
