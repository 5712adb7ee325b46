{{- /*
What a schema cannot say: settings that need or exclude each other. Every fault is named by its path, with what to do; nothing is
installed while there is one.
*/ -}}
{{- define "seamark.check" -}}
{{- $config := .Values.config -}}
{{- $faults := list -}}
{{- $mode := include "seamark.mode" . -}}
{{- /* Not as kubeVersion of Chart.yaml: helm template without a cluster has the version that Helm was built with. */ -}}
{{- if and (lookup "v1" "Namespace" "" "kube-system") (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- $faults = append $faults (printf "Kubernetes %s: the chart needs 1.30 or newer, for the sleep of preStop hooks and the matchConditions of webhooks; upgrade the cluster" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (eq .Values.mode "enforce") (eq (dig "mode" "" $config) "observe") -}}
{{- $faults = append $faults "config.mode: is observe while mode is enforce; set one of them" -}}
{{- end -}}
{{- if and (eq $mode "enforce") (not (dig "records" "owner" "" $config)) -}}
{{- $faults = append $faults "config.records.owner: mode enforce needs an owner id, which is unique per installation and marks what is ours; set config.records.owner, such as the name of the cluster" -}}
{{- end -}}
{{- if and (dig "namespace" "" $config) (ne (dig "namespace" "" $config) .Release.Namespace) -}}
{{- $faults = append $faults (printf "config.namespace: is %s, and the release is installed in %s; leave config.namespace out" $config.namespace .Release.Namespace) -}}
{{- end -}}
{{- with dig "records" "owner" "" $config -}}
{{- if not (regexMatch "^[!-~]{1,63}$" .) -}}
{{- $faults = append $faults (printf "config.records.owner: %q is not 1 to 63 visible ASCII characters; choose another name, such as that of the cluster" .) -}}
{{- else if regexMatch "[\",=|\\\\]" . -}}
{{- $faults = append $faults (printf "config.records.owner: %q has one of the characters \", comma, =, | and \\; choose another name, such as that of the cluster" .) -}}
{{- end -}}
{{- end -}}
{{- $zones := dig "dns" "zones" (list) $config -}}
{{- $named := dict -}}
{{- range $zones -}}
{{- $zone := first (splitList "=" .) | trimSuffix "." | lower -}}
{{- if not (regexMatch "^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?([.][a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$" $zone) -}}
{{- $faults = append $faults (printf "config.dns.zones: %q is no DNS name; write it as example.com" .) -}}
{{- else if hasKey $named $zone -}}
{{- $faults = append $faults (printf "config.dns.zones: %q is named twice; remove one" $zone) -}}
{{- end -}}
{{- $_ := set $named $zone true -}}
{{- end -}}
{{- with dig "wildcard" "zone" "" $config -}}
{{- if not (regexMatch "^[A-Za-z0-9_.-]+$" .) -}}
{{- $faults = append $faults (printf "config.wildcard.zone: %q is no DNS name; names are *.CLUSTER.ZONE, write ZONE such as clusters.example.com" .) -}}
{{- end -}}
{{- end -}}
{{- $addresses := dict "metrics.address" (dig "metrics" "address" "" $config) "probes.address" (dig "probes" "address" "" $config) "dashboard.address" (dig "dashboard" "address" "" $config) "gateway.httpListen" (dig "gateway" "httpListen" "" $config) "gateway.httpsListen" (dig "gateway" "httpsListen" "" $config) "gateway.xdsListen" (dig "gateway" "xdsListen" "" $config) -}}
{{- range $index, $address := dig "dns" "listen" (list) $config }}{{ $_ := set $addresses (printf "dns.listen[%d]" $index) $address }}{{ end -}}
{{- $isBound := true -}}
{{- range $path, $address := $addresses -}}
{{- if and $address (ne $address "0") (or (not (regexMatch "^(\\[[0-9A-Fa-f:.]+\\]|[^]:[]*):[0-9]{1,5}$" $address)) (gt (include "seamark.port" $address | int) 65535)) -}}
{{- $isBound = false -}}
{{- $faults = append $faults (printf "config.%s: %q is not HOST:PORT or :PORT with a port to 65535" $path $address) -}}
{{- end -}}
{{- end -}}
{{- $listen := dig "dns" "listen" (list) $config -}}
{{- if and .Values.dns.enabled (empty $zones) -}}
{{- $faults = append $faults "config.dns.zones: dns.enabled needs at least one zone to serve; add config.dns.zones, such as [example.com]" -}}
{{- end -}}
{{- if and (not .Values.dns.enabled) $listen (empty $zones) -}}
{{- $faults = append $faults "config.dns.listen: a DNS server without zones answers nothing; add config.dns.zones, such as [example.com]" -}}
{{- end -}}
{{- if and (not .Values.dns.enabled) (empty $listen) $zones -}}
{{- $faults = append $faults "config.dns.zones: nobody answers for the zones; set dns.enabled: true" -}}
{{- end -}}
{{- if and .Values.dns.secondaries (empty (dig "dns" "keys" (list) $config)) -}}
{{- $faults = append $faults "dns.secondaries: secondaries copy the zones with a TSIG key; add one to config.dns.keys" -}}
{{- end -}}
{{- if and .Values.dns.secondaries (not .Values.dns.enabled) -}}
{{- $faults = append $faults "dns.secondaries: there is no DNS server to copy from; set dns.enabled: true" -}}
{{- end -}}
{{- if and (dig "dns" "dataDir" "" $config) (gt (int .Values.replicaCount) 1) -}}
{{- $faults = append $faults "config.dns.dataDir: a folder belongs to one process, and there are several replicas; leave it out, so that the zones are in ConfigMaps that all replicas read, or set replicaCount: 1" -}}
{{- end -}}
{{- if and (dig "dns" "dataDir" "" $config) (dig "dns" "copyDir" "" $config) -}}
{{- $faults = append $faults "config.dns.copyDir: is for zones in ConfigMaps; with config.dns.dataDir the zones themselves are in a folder; remove one of them" -}}
{{- end -}}
{{- if and (not (dig "leaderElection" "enabled" true $config)) (gt (int .Values.replicaCount) 1) -}}
{{- $faults = append $faults "config.leaderElection.enabled: several replicas without leader election would write at the same time; set it to true, or replicaCount: 1" -}}
{{- end -}}
{{- $hasFleet := dig "fleet" "enabled" false $config -}}
{{- $hasBalance := dig "balance" "enabled" false $config -}}
{{- $isElsewhere := or (dig "fleet" "answeredElsewhere" false $config) (not (dig "fleet" "dns" true $config)) -}}
{{- if and $hasFleet (not $isElsewhere) -}}
{{- if not $hasBalance -}}
{{- $faults = append $faults "config.fleet.enabled: no host of the fleet would answer; add config.balance.enabled: true, which probes and publishes them, or set config.fleet.answeredElsewhere: true where another process such as ExternalDNS publishes the hosts, or config.fleet.dns: false" -}}
{{- else if not (or .Values.dns.enabled $listen (and (dig "records" "enabled" false $config) (dig "records" "providers" (list) $config))) -}}
{{- $faults = append $faults "config.fleet.enabled: no host of the fleet would answer; set dns.enabled: true with config.dns.zones for the DNS server of the manager, or config.records.enabled, config.records.dnsEndpoints.enabled and config.records.providers for another one, or config.fleet.answeredElsewhere: true" -}}
{{- end -}}
{{- end -}}
{{- if and (eq (dig "gateway" "mode" "cluster" $config) "global") (dig "gateway" "enabled" false $config) (not $hasFleet) -}}
{{- $faults = append $faults "config.gateway.mode: global puts the hosts of the fleet in front of its members; add config.fleet.enabled: true, or use cluster" -}}
{{- end -}}
{{- $envoy := dig "gateway" "envoy" "" $config -}}
{{- if and $envoy (dig "gateway" "enabled" false $config) -}}
{{- if and (eq .Values.gateway.dataPlane "envoy") (ne $envoy "external") -}}
{{- $faults = append $faults (printf "config.gateway.envoy: is %s, and gateway.dataPlane: envoy runs Envoys of their own; leave config.gateway.envoy out, or set gateway.dataPlane: built-in" $envoy) -}}
{{- end -}}
{{- if and (eq .Values.gateway.dataPlane "built-in") (ne $envoy "off") -}}
{{- $faults = append $faults (printf "config.gateway.envoy: is %s, and gateway.dataPlane is built-in; leave config.gateway.envoy out, or set gateway.dataPlane: envoy" $envoy) -}}
{{- end -}}
{{- end -}}
{{- if and (dig "wildcard" "enabled" false $config) (not (dig "wildcard" "zone" "" $config)) -}}
{{- $faults = append $faults "config.wildcard.zone: config.wildcard.enabled needs the zone of *.CLUSTER.ZONE; add config.wildcard.zone, such as clusters.example.com" -}}
{{- end -}}
{{- if and (dig "records" "enabled" false $config) (empty (dig "records" "providers" (list) $config)) (not .Values.dns.enabled) -}}
{{- $faults = append $faults "config.records.providers: config.records.enabled needs a DNS provider to write to; add one (docs/providers), or set dns.enabled: true with config.dns.zones" -}}
{{- end -}}
{{- if and (dig "admission" "address" "" $config) (not .Values.admission.enabled) -}}
{{- $faults = append $faults "config.admission.address: webhooks need a Service, a certificate and rights; set admission.enabled: true" -}}
{{- end -}}
{{- if and .Values.dashboard.enabled (not (.Files.Get "files/rights.yaml" | fromYaml).has.dashboard) -}}
{{- $faults = append $faults "dashboard.enabled: this version of the manager has no page; leave it out" -}}
{{- else if and .Values.dashboard.enabled (not .Values.dashboard.tlsSecret) -}}
{{- $faults = append $faults "dashboard.tlsSecret: beyond its Pod the page is served over TLS only; name a Secret of type kubernetes.io/tls, or leave dashboard.enabled out and use kubectl port-forward" -}}
{{- end -}}
{{- if and .Values.crds.enabled (dig "installCRDs" false $config) -}}
{{- $faults = append $faults "config.installCRDs: the chart installs the CRDs; leave it out, or set crds.enabled: false" -}}
{{- end -}}
{{- $ports := dict -}}
{{- range ternary (include "seamark.ports" . | fromYamlArray) list $isBound -}}
{{- $key := printf "%v/%s" .port (.protocol | default "TCP") -}}
{{- if hasKey $ports $key -}}
{{- $faults = append $faults (printf "config: %s and %s have the same port %s; change one of the addresses" (get $ports $key) .name $key) -}}
{{- end -}}
{{- if and (lt (int .port) 1024) -}}
{{- $faults = append $faults (printf "config: %s has port %v, which a container without capabilities cannot open; use a port from 1024, the Service has the usual one" .name .port) -}}
{{- end -}}
{{- $_ := set $ports $key .name -}}
{{- end -}}
{{- $used := dict -}}
{{- if and (dig "gateway" "enabled" false $config) (eq .Values.gateway.dataPlane "envoy") -}}
{{- $_ := set $used (include "seamark.port" (dig "gateway" "httpListen" ":8080" $config)) "config.gateway.httpListen" -}}
{{- $_ := set $used (include "seamark.port" (dig "gateway" "httpsListen" ":8443" $config)) "config.gateway.httpsListen" -}}
{{- $_ := set $used "19003" "the preStop hook of Envoy" -}}
{{- end -}}
{{- range .Values.gateway.service.extraPorts -}}
{{- $key := toString (int .port) -}}
{{- if hasKey $used $key -}}
{{- $faults = append $faults (printf "gateway.service.extraPorts: port %s is that of %s; remove it" $key (get $used $key)) -}}
{{- end -}}
{{- $_ := set $used $key "another entry" -}}
{{- end -}}
{{- $faults = concat $faults (include "seamark.storedVersions" . | fromYamlArray) -}}
{{- if $faults -}}
{{- fail (printf "\n%s" (join "\n" $faults)) -}}
{{- end -}}
{{- end }}

{{- /* Versions that objects are stored in and that the CRDs of these values would not have, as faults. */ -}}
{{- define "seamark.storedVersions" -}}
{{- if .Values.crds.enabled -}}
{{- range include "seamark.crds" . | fromYamlArray -}}
{{- $versions := list -}}
{{- range .spec.versions }}{{ $versions = append $versions .name }}{{ end -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .metadata.name -}}
{{- $name := .metadata.name -}}
{{- range dig "status" "storedVersions" (list) (default (dict) $found) -}}
{{- if not (has . $versions) }}
- {{ printf "crds: objects of %s are stored in version %s, which this version of the chart with these values does not have, so they could not be read any more; keep admission.enabled: true, or a chart that has %s, until the objects are stored in another version" $name . . | quote }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
