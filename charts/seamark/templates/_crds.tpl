{{- /* The CRDs of the capabilities that are on, as a list. Those of load balancers have version v1 where the manager converts it. */ -}}
{{- define "seamark.crds" -}}
{{- $config := .Values.config -}}
{{- $fleet := dig "fleet" "enabled" false $config -}}
{{- $balance := or $fleet (dig "balance" "enabled" false $config) -}}
{{- $converts := and .Values.admission.enabled (dig "balance" "enabled" false $config) (eq (include "seamark.mode" .) "enforce") -}}
{{- $list := list -}}
{{- if $fleet }}{{ $list = concat $list (.Files.Get "files/crds-fleet.yaml" | fromYamlArray) }}{{ end -}}
{{- if and $balance (not $converts) }}{{ $list = concat $list (.Files.Get "files/crds-balance.yaml" | fromYamlArray) }}{{ end -}}
{{- if and $balance $converts -}}
{{- range .Files.Get "files/crds-balance-v1.yaml" | fromYamlArray -}}
{{- $service := .spec.conversion.webhook.clientConfig.service -}}
{{- $_ := set $service "namespace" $.Release.Namespace -}}
{{- $_ := set $service "name" (printf "%s-admission" (include "seamark.fullname" $)) -}}
{{- $list = append $list . -}}
{{- end -}}
{{- end -}}
{{- toYaml $list -}}
{{- end }}
