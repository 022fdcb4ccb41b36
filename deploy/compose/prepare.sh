#!/bin/sh
# Makes what deploy/compose.yaml needs and no repository may hold: secrets, each of its own, in deploy/.env, and a certificate to try
# it with in deploy/compose/tls. What is there already stays.
#
#   sh deploy/compose/prepare.sh [folder]      folder: default the one of compose.yaml
set -eu
folder=${1:-$(dirname "$0")/..}
env=$folder/.env
tls=$folder/compose/tls

if [ -e "$env" ]; then
  echo "$env is there already; nothing in it is changed."
else
  (
    umask 077 # only you may read it
    for name in MYSQL_PASSWORD MYSQL_ROOT_PASSWORD REDIS_PASSWORD ROCKETMQ_ACCESS_SECRET MESSAGE_KEY JWT_SECRET \
      ADMISSION_SIGN_KEY ADMISSION_SEAL_KEY PAYMENT_WEBHOOK_SECRET GRAFANA_PASSWORD; do
      echo "$name=$(openssl rand -hex 32)"
    done >"$env"
  )
  echo "$env has a new secret for each purpose. Keep it: without it the data of the servers cannot be used."
fi

mkdir -p "$tls"
for name in buyers operators; do
  if [ -e "$tls/$name.key" ]; then
    echo "$tls/$name.key is there already."
  else
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -subj /CN=localhost \
      -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$tls/$name.key" -out "$tls/$name.crt" 2>/dev/null
    chmod 644 "$tls/$name.key" # nginx runs as another user; put a certificate of yours here before others come
    echo "$tls/$name.crt is self-signed: for your own machine only."
  fi
done
