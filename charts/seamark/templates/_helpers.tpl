{{- define "seamark.fullname" -}}
{{- if contains "seamark" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-seamark" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "seamark.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "seamark.fullname" .) }}
{{- end }}

{{- define "seamark.selector" -}}
app.kubernetes.io/name: seamark
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "seamark.labels" -}}
{{ include "seamark.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: seamark
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Of an image of the values, with the tag where they have none. */ -}}
{{- define "seamark.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}{{ else }}{{ .image.repository }}:{{ .image.tag | default .tag }}{{ end }}
{{- end }}

{{- /* The port of HOST:PORT. */ -}}
{{- define "seamark.port" -}}
{{- regexFind "[0-9]+$" . }}
{{- end }}

{{- /* The restricted profile of PodSecurity. */ -}}
{{- define "seamark.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10000
runAsGroup: 10000
fsGroup: 10000
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "seamark.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "seamark.spread" -}}
{{- range $index, $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
{{- if $index }}{{ "\n" }}{{ end -}}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- $.selector | nindent 6 }}
{{- end -}}
{{- end }}

{{- /* What the values say about a Service that clients outside the cluster use. */ -}}
{{- define "seamark.serviceSpec" -}}
type: {{ .type }}
{{- if ne .type "ClusterIP" }}
externalTrafficPolicy: {{ .externalTrafficPolicy }}
{{- end }}
{{- if and (eq .type "LoadBalancer") .loadBalancerClass }}
loadBalancerClass: {{ .loadBalancerClass }}
{{- end }}
{{- if and (eq .type "LoadBalancer") .loadBalancerSourceRanges }}
loadBalancerSourceRanges:
  {{- toYaml .loadBalancerSourceRanges | nindent 2 }}
{{- end }}
{{- end }}
