{{- /* The ports of the manager, as a list of {name, port, protocol}: those of the addresses in its configuration. */ -}}
{{- define "seamark.ports" -}}
{{- $config := include "seamark.config" . | fromYaml -}}
{{- range $name, $address := dict
  "metrics" (dig "metrics" "address" ":8180" $config)
  "probes" (dig "probes" "address" ":8181" $config)
  "admission" (dig "admission" "address" "" $config)
  "xds" (dig "gateway" "xdsListen" "" $config)
  "dashboard" (dig "dashboard" "address" "" $config) }}
{{- if and $address (ne $address "0") }}
- name: {{ $name }}
  port: {{ include "seamark.port" $address }}
{{- end }}
{{- end }}
{{- with first (dig "dns" "listen" (list) $config) }}
- name: dns
  port: {{ include "seamark.port" . }}
  protocol: UDP
- name: dns-tcp
  port: {{ include "seamark.port" . }}
{{- end }}
{{- if and (dig "gateway" "enabled" false $config) (ne (include "seamark.envoy" .) "true") }}
- name: http
  port: {{ include "seamark.port" (dig "gateway" "httpListen" ":8080" $config) }}
- name: https
  port: {{ include "seamark.port" (dig "gateway" "httpsListen" ":8443" $config) }}
{{- range .Values.gateway.service.extraPorts }}
- name: port-{{ .port }}
  port: {{ .port }}
  protocol: {{ .protocol | default "TCP" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "seamark.probesPort" -}}
{{- range include "seamark.ports" . | fromYamlArray }}{{ if eq .name "probes" }}{{ .port }}{{ end }}{{ end }}
{{- end }}
