/** Shell scripts that run the image without a container engine. */

/** $1: folder of the files, $2: folder on which the root is mounted, $3: Node, $4: user, then the command. */
export const IN_IMAGE = `
mount --make-rprivate /
mount -t tmpfs none "$2"
cd "$2"
mkdir -p dev proc data tmp usr/local/bin run-node seamark
for folder in usr bin lib lib64; do
  [ -e "/$folder" ] || continue
  mkdir -p "$folder"
  mount --bind "/$folder" "$folder"
  mount -o remount,bind,ro "$folder"
done
mount --bind "$(dirname "$3")" run-node
mount --bind /dev dev
mount -t proc none proc
mount --bind "$1" seamark
mount -o remount,bind,ro seamark
# The volume that a Pod mounts.
mount -t tmpfs -o mode=0777 none data
mount -o remount,ro .
ip link set lo up
user=$4
shift 4
exec chroot . env -i PATH=/run-node:/usr/bin:/bin setpriv --reuid "$user" --regid "$user" --clear-groups \\
  --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
`

/** A control plane and the manager of a hub, with the one volume that it has; $1: the program. */
export const MANAGER = `
seamark=$1
cd /data
export KUBECONFIG=/data/kubeconfig
$seamark apiserver --listen 127.0.0.1:0 --kubeconfig kubeconfig >apiserver.log 2>&1 &
server=$!
until [ -s kubeconfig ]; do sleep 0.1; done
$seamark hub init --zone example.com >/dev/null
$seamark run --config seamark.yaml -n seamark >manager.log 2>&1 &
manager=$!
node -e '
  const ready = () => fetch("http://127.0.0.1:8181/readyz").then(({ ok }) => ok, () => false)
  const poll = async () => ((await ready()) ? console.log("ready") : setTimeout(poll, 100))
  setTimeout(() => process.exit(1), 60_000).unref()
  poll()' || { cat manager.log; exit 1; }
$seamark dig @127.0.0.1 -p 8053 example.com SOA +short
kill $manager && wait $manager
echo "manager ended with $?"
kill $server && wait $server
`
