#!/bin/sh
sed -i -e 's/^  a: .*/  a: "9"/' -e 's/^  size: .*/  size: 7/' "$1"
