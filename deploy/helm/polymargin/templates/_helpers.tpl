{{- define "polymargin.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "polymargin.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "polymargin.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "polymargin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "polymargin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "polymargin.hosts" -}}
{{- $name := include "polymargin.name" . -}}
{{- $own := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) -}}
{{- $cluster := list (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- join "," (concat $own $cluster .Values.allowedHosts) -}}
{{- end -}}

{{/* What a container of any part is told and has: settings, and the folders. */}}
{{- define "polymargin.container" -}}
image: {{ include "polymargin.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
env:
  - name: POLYMARGIN_DATABASE_URL
    valueFrom:
      secretKeyRef: {name: {{ .Values.secret.name | quote }}, key: {{ .Values.secret.databaseUrlKey | quote }}}
  - name: POLYMARGIN_REDIS_URL
    valueFrom:
      secretKeyRef: {name: {{ .Values.secret.name | quote }}, key: {{ .Values.secret.redisUrlKey | quote }}}
  - name: POLYMARGIN_HOME
    value: /var/lib/polymargin
  - name: POLYMARGIN_CACHE
    value: /var/cache/polymargin
  - name: POLYMARGIN_CACHE_BYTES
    value: {{ .Values.cache.bytes | int64 | quote }}
  {{- if .Values.files.bucket }}
  - name: POLYMARGIN_FILES
    value: {{ .Values.files.bucket | quote }}
  {{- with .Values.files.endpoint }}
  - name: POLYMARGIN_FILES_ENDPOINT
    value: {{ . | quote }}
  {{- end }}
  - name: POLYMARGIN_ADMIN_KEY
    valueFrom:
      secretKeyRef: {name: {{ .Values.secret.name | quote }}, key: {{ .Values.secret.adminKeyKey | quote }}}
  {{- end }}
  - name: POLYMARGIN_ALLOWED_HOSTS
    value: {{ include "polymargin.hosts" . | quote }}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
{{- with .Values.files.credentialsSecret }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
volumeMounts:
  - name: files
    mountPath: /var/lib/polymargin
  - name: cache
    mountPath: /var/cache/polymargin
  - name: temporary
    mountPath: /tmp
{{- end -}}

{{/* What a pod of any part begins with: the schema is brought up to date, by whichever comes first. */}}
{{- define "polymargin.pod" -}}
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
automountServiceAccountToken: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: files
    {{- if .Values.files.bucket }}
    emptyDir: {}
    {{- else }}
    persistentVolumeClaim:
      claimName: {{ .Values.files.existingClaim | default (include "polymargin.name" .) | quote }}
    {{- end }}
  - name: cache
    emptyDir:
      sizeLimit: {{ .Values.cache.size }}
  - name: temporary
    emptyDir: {}
initContainers:
  - name: migrate
    command: ["polymargin", "migrate"]
    {{- include "polymargin.container" . | nindent 4 }}
{{- end -}}
