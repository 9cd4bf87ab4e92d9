{{- define "coordinator.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | replace "inference-coordinator-inference-coordinator" "inference-coordinator" | trunc 29 | trimSuffix "-" -}}
{{- end -}}

{{- define "coordinator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "coordinator.labels" -}}
{{ include "coordinator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "coordinator.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "coordinator.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "coordinator.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* Passes the restricted Pod Security Standard. */}}
{{- define "coordinator.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "coordinator.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Settings of the coordinator and of `migrate`. */}}
{{- define "coordinator.environment" -}}
- { name: PUBLIC_URL, value: {{ required "publicUrl is required: the address of API and console, such as https://gateway.example" .Values.publicUrl | quote }} }
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- range .Values.secretSettings }}
- { name: {{ . }}_FILE, value: /etc/inference/secrets/{{ . }} }
{{- end }}
{{- end -}}
