#!/usr/bin/env bash
# Builds Helm of one major version from Go modules into FOLDER/VERSION-DIGEST, unless it is there, and prints its path:
# `build.sh v4 FOLDER`. Needs Go of the version in go.mod or newer; takes about three minutes on two cores.
set -euo pipefail
major=$1
folder=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$(dirname "$0")/$major"
version=$(sed -n "s/^require helm.sh\/helm\/$major \(v[0-9.]*\)\$/\1/p" go.mod)
# What it is built of, so that a changed go.sum is built anew.
digest=$(cat go.mod go.sum ../build.sh | sha256sum | cut -c1-12)
program="$folder/$version-$digest/helm"
if [ ! -x "$program" ]; then
  mkdir -p "$(dirname "$program")"
  # Replaced as a whole: a build that was interrupted leaves nothing that looks complete.
  GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X helm.sh/helm/$major/internal/version.version=$version" \
    -o "$program.draft" "helm.sh/helm/$major/cmd/helm" >&2
  mv "$program.draft" "$program"
fi
echo "$program"
