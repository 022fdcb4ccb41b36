#!/bin/sh
# Makes the root file system of the image: the one list of what is in it. Run by the Dockerfile, and by the test that runs the
# image without a builder.
#
#   assemble.sh <build> <root>
#
#   <build>   a checkout with dist/, and with node_modules/ of production only
#   <root>    an empty or missing folder
#
# Node and its libraries are those of the machine that it runs on, which has to be a Debian. There is no shell and no package
# manager in the image: to look around, use `kubectl debug` or `docker run --volumes-from` with another image.
set -eu
build=$1
root=$2
user=10001 # as in the Dockerfile

mkdir -p "$root/app" "$root/etc" "$root/tmp" "$root/usr/local/bin" "$root/var/lib/dpkg/status.d"
chmod 1777 "$root/tmp" # the one folder that programs may write to, where it is not read-only as well

# -- The package, as `npm pack` has it, with what it needs ------------------------------------------------------------
mkdir "$root/app/deploy"
for part in package.json LICENSE CHANGELOG.md config lua deploy/prometheus dist node_modules; do
  cp -R "$build/$part" "$root/app/$part"
done

# -- Node, and what it loads ------------------------------------------------------------------------------------------
node=$(readlink -f "$(command -v node)")
cp "$node" "$root/usr/local/bin/node"
license=$(dirname "$(dirname "$node")")/LICENSE
if [ -f "$license" ]; then
  mkdir -p "$root/usr/share/doc/node"
  cp "$license" "$root/usr/share/doc/node/copyright"
fi
# The loader and each library, at the path where the loader looks for it: those of Node, and those of packages that are not all
# JavaScript. One that is not found here would be missing when a program starts.
natives=$(find "$root/app/node_modules" -name '*.node')
# shellcheck disable=SC2086 # a path of a package has no blank
needed=$(ldd "$node" $natives)
if echo "$needed" | grep 'not found' >&2; then exit 1; fi
libraries=$(echo "$needed" | awk '$2 == "=>" { print $3 } NF == 2 && $1 ~ /^\// { print $1 }' | sort -u)
for library in $libraries; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done

# -- What scanners and lawyers look for: which packages of Debian these files are, and their licences -----------------
package_of() {
  real=$(readlink -f "$1")
  for path in "$1" "$real" "${real#/usr}"; do # a package may know its file by the path from before /lib became /usr/lib
    if line=$(dpkg-query -S "$path" 2>/dev/null); then
      echo "${line%%:*}"
      return
    fi
  done
  echo "assemble.sh: no package of this machine has $1; it takes a Debian" >&2
  return 1
}
for library in $libraries; do
  package=$(package_of "$library")
  dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
  mkdir -p "$root/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
done

# -- Who runs it, and how names of hosts are looked up ----------------------------------------------------------------
echo "seckill:x:$user:$user:seckill:/tmp:/sbin/nologin" >"$root/etc/passwd"
echo "seckill:x:$user:" >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cp /etc/os-release "$root/etc/os-release" # for scanners: which Debian the libraries are of

# Read by everybody, written by nobody: the image is used by a user who owns none of it.
chmod -R u=rwX,go=rX "$root/app" "$root/etc" "$root/usr" "$root/var"
