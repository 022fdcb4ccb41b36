#!/bin/sh
# Creates the root file system of the image and is the only list of its contents. The Dockerfile runs it, and so does the test that
# runs the image without a builder.
#
#   assemble.sh <build> <root>
#
#   <build>   a checkout with dist/ and the production packages in node_modules/
#   <root>    an empty or missing folder
#
# Node and its libraries come from the machine that runs the script, which must be a Debian. The image has no shell and no package
# manager. To look inside, use `kubectl debug` or `docker run --volumes-from` with another image.
set -eu
build=$1
root=$2
user=10001 # as in the Dockerfile

mkdir -p "$root/app" "$root/etc" "$root/tmp" "$root/usr/local/bin" "$root/var/lib/dpkg/status.d"
chmod 1777 "$root/tmp" # the only folder that programs may write to, unless it is read-only too

# -- The package as `npm pack` has it, with its production packages ---------------------------------------------------
mkdir "$root/app/deploy"
for part in package.json LICENSE CHANGELOG.md config lua deploy/prometheus dist node_modules; do
  cp -R "$build/$part" "$root/app/$part"
done

# -- Node and its libraries -------------------------------------------------------------------------------------------
node=$(readlink -f "$(command -v node)")
cp "$node" "$root/usr/local/bin/node"
license=$(dirname "$(dirname "$node")")/LICENSE
if [ -f "$license" ]; then
  mkdir -p "$root/usr/share/doc/node"
  cp "$license" "$root/usr/share/doc/node/copyright"
fi
# Copies the loader and each library of Node and of native packages to the path where the loader looks for it. Fails if a library is
# missing, since a program could not start without it.
natives=$(find "$root/app/node_modules" -name '*.node')
# shellcheck disable=SC2086 # paths of packages have no blanks
needed=$(ldd "$node" $natives)
if echo "$needed" | grep 'not found' >&2; then exit 1; fi
libraries=$(echo "$needed" | awk '$2 == "=>" { print $3 } NF == 2 && $1 ~ /^\// { print $1 }' | sort -u)
for library in $libraries; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done

# -- Names and licences of the Debian packages, for scanners and lawyers ----------------------------------------------
package_of() {
  real=$(readlink -f "$1")
  for path in "$1" "$real" "${real#/usr}"; do # a package may list its file under /lib, which has become /usr/lib
    if line=$(dpkg-query -S "$path" 2>/dev/null); then
      echo "${line%%:*}"
      return
    fi
  done
  echo "assemble.sh: no Debian package of this machine has $1" >&2
  return 1
}
for library in $libraries; do
  package=$(package_of "$library")
  dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
  mkdir -p "$root/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
done

# -- The user, and how host names are resolved ------------------------------------------------------------------------
echo "seckill:x:$user:$user:seckill:/tmp:/sbin/nologin" >"$root/etc/passwd"
echo "seckill:x:$user:" >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cp /etc/os-release "$root/etc/os-release" # tells scanners the Debian release of the libraries

# Makes all files readable and none writable, since the user of the image owns none of them.
chmod -R u=rwX,go=rX "$root/app" "$root/etc" "$root/usr" "$root/var"
