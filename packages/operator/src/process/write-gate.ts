/**
 * The gate for all writes of this process to Kubernetes: every write of every capability passes it.
 *
 * Place in the flow: at the transport, below controllers, Events, status and guard state; checked again before a request
 * that the server asked to repeat later. Closed while writing is paused, in observe mode, and in a process that does not
 * hold its lease. Writes of the Lease itself pass: a paused manager remains the leader. So do those of the admission
 * webhook's certificate: every replica serves it.
 */
import { type Cluster, KubeError, Lease } from '@seamark/kube'

/** Nothing was sent. */
export class WriteRefused extends KubeError {}

/** `check` throws WriteRefused when nothing may be written. `exempt`: paths that pass. */
export function gateWrites(
  cluster: Pick<Cluster, 'guardWrites'>,
  check: () => void,
  exempt: ReadonlySet<string> = new Set(),
): void {
  cluster.guardWrites(({ path }) => {
    if (!path.startsWith(`/apis/${Lease.group}/`) && !exempt.has(path)) check()
  })
}
