#!/usr/bin/env bash
# Builds kube-apiserver from Go modules into FOLDER/VERSION-DIGEST, unless it is there, and prints its path: `build.sh FOLDER`.
# Needs Go of the version in go.mod or newer; takes about five minutes on two cores, and a gigabyte of modules.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
version=$(sed -n 's/^require k8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' go.mod)
# What it is built of, so that a changed go.sum is built anew.
digest=$(cat go.mod go.sum build.sh | sha256sum | cut -c1-12)
program="$folder/$version-$digest/kube-apiserver"
if [ ! -x "$program" ]; then
  IFS=. read -r major minor _ <<<"${version#v}"
  package=k8s.io/component-base/version
  mkdir -p "$(dirname "$program")"
  # Replaced as a whole: a build that was interrupted leaves nothing that looks complete.
  GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor" \
    -o "$program.draft" k8s.io/kubernetes/cmd/kube-apiserver >&2
  mv "$program.draft" "$program"
fi
echo "$program"
