/**
 * The one gate between this process and what it may change in Kubernetes: every write of every capability passes it.
 *
 * Place in the flow: at the wire, below controllers, Events, status and guard state, and asked again before a request that
 * the server asked to repeat later. Closed while writing is paused, in observe mode, and for a process that does not hold its
 * lease. Writes of the Lease itself pass: a paused manager keeps leading.
 */
import { type Cluster, KubeError, Lease } from '@seamark/kube'

/** Nothing was sent. */
export class WriteRefused extends KubeError {}

/** `check` throws WriteRefused when nothing may be written. */
export function gateWrites(cluster: Pick<Cluster, 'guardWrites'>, check: () => void): void {
  cluster.guardWrites(({ path }) => {
    if (!path.startsWith(`/apis/${Lease.group}/`)) check()
  })
}
