{{- define "seckill.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "seckill.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "seckill.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "seckill.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Of all that belongs to this release. */ -}}
{{- define "seckill.selector" -}}
app.kubernetes.io/name: {{ include "seckill.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "seckill.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "seckill.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* dict "root" $ "own" what one program has instead of the image of all, or nothing. A digest goes before a tag. */ -}}
{{- define "seckill.image" -}}
{{- $all := .root.Values.image -}}
{{- $own := default dict .own -}}
{{- $image := empty (or $own.digest $own.tag) | ternary $all $own -}}
{{- if $image.digest -}}
{{ $all.repository }}@{{ $image.digest }}
{{- else -}}
{{ $all.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end }}

{{- /* A number as text: Helm keeps numbers as floats, and would write a large one as 3.456e+08. */ -}}
{{- define "seckill.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end }}

{{- /* The settings and secrets of one program: dict "root" $ "program" "api" "own" the values of that program, or nothing.
A variable stands once: what `env` of the program says goes before `env` of all, and both before what is made here. */ -}}
{{- define "seckill.env" -}}
{{- $root := .root -}}
{{- $settings := $root.Values.settings -}}
{{- $ofProgram := default list (default dict .own).env -}}
{{- $env := dict -}}
{{- range $ofProgram }}{{ $_ := set $env .name true }}{{ end -}}
{{- $more := list -}}
{{- range $root.Values.env }}{{ if not (hasKey $env .name) }}{{ $more = append $more . }}{{ end }}{{ end -}}
{{- $more = concat $more $ofProgram -}}
{{- range $more }}{{ $_ := set $env .name true }}{{ end -}}
{{- range $name := include (printf "seckill.settingsOf.%s" .program) $root | fromJsonArray }}
{{- if and (hasKey $settings $name) (not (hasKey $env $name)) }}
{{- if and (get $settings $name) (get $settings (printf "%s_FILE" $name)) }}
{{- fail (printf "settings.%s and settings.%s_FILE must not both be set: keep one of the two" $name $name) }}
{{- end }}
- name: {{ $name }}
  value: {{ include "seckill.text" (index $settings $name) | quote }}
{{- end }}
{{- end }}
{{- range $name, $needed := include (printf "seckill.secretsOf.%s" .program) $root | fromJson }}
{{- $file := printf "%s_FILE" $name }}
{{- if not (or (get $settings $file) (hasKey $env $file) (hasKey $env $name)) }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.secretName }}
      key: {{ $name }}
      optional: {{ not $needed }}
{{- end }}
{{- end }}
{{- with $more }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "seckill.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001 # may read what is mounted
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- /* Files that are mounted: dict "root" $ "own" the values of one program, or nothing. */ -}}
{{- define "seckill.volumes" -}}
{{- with concat .root.Values.extraVolumes (default list (default dict .own).extraVolumes) -}}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- define "seckill.volumeMounts" -}}
{{- with concat .root.Values.extraVolumeMounts (default list (default dict .own).extraVolumeMounts) -}}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "seckill.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* What a pod of any kind has: where it may run, and how its image is pulled. */ -}}
{{- define "seckill.podPlacement" -}}
automountServiceAccountToken: false
securityContext:
  {{- include "seckill.podSecurity" . | nindent 2 }}
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
{{- end }}
