#!/usr/bin/env bash
# uuid6 2025.0.1: uuid7() runs ahead of the clock, by a millisecond for each id of a burst.
#
# The time in an id has milliseconds. An id that is asked for in the millisecond of the one before gets the next
# millisecond, whether that has come or not, and the one after it the next again: 20,000 ids that are made in a tenth
# of a second carry times up to twenty seconds ahead. uuid-utils 1.2.0 counts below the millisecond instead.
#
# Most would guess: the time of a version 7 id is when it was made, give or take a millisecond, as its text promises
# wherever ids are read as times (logs by time, `id < uuid_of(now)`, retention), and ids of two processes sort by it.
#
# Why it matters: sessions, events and messages get such ids. After an import of a long history the process goes on in
# the future for seconds: what another process writes afterwards sorts before it, and a page "since the last id" that
# goes by ids leaves it out. Whoever takes the time from an id finds events that have not happened yet.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile uuid6==2025.0.1 uuid-utils==1.2.0
cat > burst.py <<'EOF'
import sys
import time

if sys.argv[1] == "uuid6":
    from uuid6 import uuid7
else:
    from uuid_utils import uuid7

for _ in range(20_000):
    last = uuid7()
print((int(last) >> 80) - time.time_ns() // 1_000_000, int(last))
EOF
read -r ahead last < <(venv/bin/python -I burst.py uuid6)
read -r other _ < <(venv/bin/python -I burst.py uuid-utils)
next=$(venv/bin/python -I -c 'import uuid6; print(int(uuid6.uuid7()))')
echo "20,000 ids of uuid6: the last one is $ahead ms ahead of the clock; of uuid-utils: $other ms"
venv/bin/python -I - "$ahead" "$last" "$other" "$next" <<'EOF'
import sys

ahead, last, other, next_ = map(int, sys.argv[1:])
print("an id of the next process sorts", "before" if next_ < last else "behind", "the burst's last one")
assert ahead > 5_000, "changed: a burst of uuid6 no longer runs ahead of the clock"
assert next_ < last, "changed: ids of a later process sort behind the burst"
assert other <= 1, "changed: a burst of uuid-utils runs ahead of the clock"
EOF
