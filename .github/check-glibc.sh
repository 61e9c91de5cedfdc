#!/bin/sh
# check-glibc.sh FILE [FLOOR]: fails where the binary needs a newer glibc than FLOOR (default 2.28).
set -eu
file=$1
floor=${2:-2.28}
newest=$(readelf --version-info --wide "$file" | grep -o 'GLIBC_[0-9][0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
if [ -z "$newest" ]; then
  echo "$file: no versioned glibc symbol found; is it a glibc binary?" >&2
  exit 1
fi
highest=$(printf '%s\n%s\n' "$newest" "$floor" | sort -V | tail -n 1)
if [ "$highest" != "$floor" ]; then
  echo "$file needs glibc $newest, the floor is $floor" >&2
  exit 1
fi
echo "$file needs glibc $newest, within the floor of $floor"
