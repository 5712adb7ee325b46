{{- /*
The configuration that the manager gets, as YAML: config of the values, completed by what belongs to the installation. What the
values say wins.
*/ -}}
{{- define "seamark.config" -}}
{{- $own := .Values.config -}}
{{- $ours := dict "apiVersion" "config.seamark.io/v1alpha1" "kind" "ManagerConfiguration" "mode" (include "seamark.mode" .) -}}
{{- $_ := set $ours "installCRDs" (not .Values.crds.enabled) -}}
{{- if .Values.dns.enabled -}}
{{- $dns := dict "listen" (list ":5353") -}}
{{- if .Values.dns.secondaries }}{{ $_ := set $dns "secondaries" .Values.dns.secondaries }}{{ end -}}
{{- $_ := set $ours "dns" $dns -}}
{{- $_ := set $ours "records" (dict "dnsEndpoints" (dict "enabled" true)) -}}
{{- end -}}
{{- if .Values.admission.enabled -}}
{{- $name := printf "%s-admission" (include "seamark.fullname" .) -}}
{{- $_ := set $ours "admission" (dict "address" ":9443" "service" $name "secret" $name "configuration" (include "seamark.fullname" .)) -}}
{{- end -}}
{{- if .Values.dashboard.enabled -}}
{{- $files := dict "address" ":8182" "certFile" "/etc/seamark-page/tls.crt" "keyFile" "/etc/seamark-page/tls.key" -}}
{{- $_ := set $ours "dashboard" $files -}}
{{- end -}}
{{- if dig "gateway" "enabled" false $own -}}
{{- $gateway := dict "service" (printf "%s/%s-gateway" .Release.Namespace (include "seamark.fullname" .)) -}}
{{- $_ := set $ours "gateway" $gateway -}}
{{- if eq (include "seamark.envoy" .) "true" -}}
{{- $name := printf "%s-xds" (include "seamark.fullname" .) -}}
{{- $_ := set $gateway "envoy" "external" -}}
{{- $_ := set $gateway "xdsListen" ":8001" -}}
{{- $_ := set $gateway "xdsSecret" $name -}}
{{- $_ := set $gateway "xdsClientSecret" (printf "%s-client" $name) -}}
{{- $_ := set $gateway "xdsDnsNames" (list (printf "%s.%s.svc" $name .Release.Namespace)) -}}
{{- end -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $ours (deepCopy $own)) -}}
{{- end }}

{{- define "seamark.mode" -}}
{{- .Values.config.mode | default .Values.mode -}}
{{- end }}

{{- /* Whether Envoys of their own are the data plane: they get their certificates from a manager that writes. */ -}}
{{- define "seamark.envoy" -}}
{{- and (dig "gateway" "enabled" false .Values.config) (eq .Values.gateway.dataPlane "envoy") (eq (include "seamark.mode" .) "enforce") -}}
{{- end }}

{{- /* Whether a condition of files/rights.yaml holds for a configuration: {on: […], config: {…}}. */ -}}
{{- define "seamark.holds" -}}
{{- $holds := true -}}
{{- range .when -}}
{{- $value := $.config -}}
{{- $found := true -}}
{{- range .path -}}
{{- if and $found (kindIs "map" $value) (hasKey $value .) }}{{ $value = get $value . }}{{ else }}{{ $found = false }}{{ end -}}
{{- end -}}
{{- if not $found }}{{ $value = .default }}{{ end -}}
{{- if hasKey . "is" }}{{ if ne (toString $value) (toString .is) }}{{ $holds = false }}{{ end -}}
{{- else if empty $value }}{{ $holds = false }}{{ end -}}
{{- end -}}
{{- $holds -}}
{{- end }}
