/**
 * The gate for all writes of this process to Kubernetes: every write of every capability passes it.
 *
 * Place in the flow: at the transport, below controllers, Events, status and guard state; checked again before a request
 * that the server asked to repeat later. Closed while writing is paused, in observe mode, and in a process that does not
 * hold its lease. Writes of the Lease itself pass: a paused manager remains the leader. So do those of the admission
 * webhook's certificate, because every replica serves it, the one Event that reports a pause, and the reviews of the page, which
 * store nothing.
 */
import { type Cluster, KubeError, Lease } from '@seamark/kube'

/** Questions that the API takes as objects, and does not store: who has this token, what may this user read. */
const REVIEWS = /^\/apis\/(?:authentication|authorization)\.k8s\.io\/v1\/(?:token|(?:self)?subjectaccess)reviews$/

/** Nothing was sent. */
export class WriteRefused extends KubeError {}

/** `check` throws WriteRefused when nothing may be written. */
export function gateWrites(
  cluster: Pick<Cluster, 'guardWrites'>,
  check: () => void,
  isExempt: (path: string) => boolean = () => false,
): void {
  cluster.guardWrites(({ path }) => {
    try {
      check()
    } catch (refusal) {
      // Only now: paths are compared for every write otherwise.
      if (!path.startsWith(`/apis/${Lease.group}/`) && !REVIEWS.test(path) && !isExempt(path)) throw refusal
    }
  })
}
