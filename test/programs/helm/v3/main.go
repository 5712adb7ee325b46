// Keeps what Helm is built of in go.mod. build.sh builds the program itself: helm.sh/helm/v3/cmd/helm.
package main

import _ "helm.sh/helm/v3/pkg/action"

func main() {}
