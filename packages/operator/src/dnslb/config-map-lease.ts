/**
 * The original's lease: an annotation of a ConfigMap, as client-go's former leader election wrote it. Held beside a Lease of
 * coordination.k8s.io, so that the original and this program never write at the same time.
 *
 * A client for `createElection` (@seamark/kube) that stores the Lease it is given in that annotation.
 */
import { type Client, ConfigMap, Lease } from '@seamark/kube'

export const LEADER_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader'

/** As client-go's LeaderElectionRecord is encoded. */
interface LeaderRecord {
  holderIdentity?: string
  leaseDurationSeconds?: number
  acquireTime?: string | null
  renewTime?: string | null
  leaderTransitions?: number
}

export function configMapLeaseClient(client: Client): Client {
  return {
    ...client,
    find: async (kind, key, options) => {
      if ((kind as unknown) !== Lease) return client.find(kind, key, options)
      const found = await client.find(ConfigMap, key, options)
      return found === undefined ? undefined : (toLease(found) as never)
    },
    create: async (kind, object, options) => {
      if ((kind as unknown) !== Lease) return client.create(kind, object, options)
      return toLease(await client.create(ConfigMap, toConfigMap(object as unknown as Lease), options)) as never
    },
    update: async (kind, object, options) => {
      if ((kind as unknown) !== Lease) return client.update(kind, object, options)
      return toLease(await client.update(ConfigMap, toConfigMap(object as unknown as Lease), options)) as never
    },
  }
}

/** Data and other annotations of the ConfigMap are kept in the metadata of the Lease and in `data`. */
function toLease(object: ConfigMap): Lease {
  let record: LeaderRecord = {}
  try {
    record = (JSON.parse(object.metadata.annotations?.[LEADER_ANNOTATION] ?? '{}') ?? {}) as LeaderRecord
  } catch {
    // client-go treats an unreadable record as a free lease.
  }
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaderTransitions } = record
  return {
    ...object,
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    spec: {
      ...(holderIdentity !== undefined && { holderIdentity }),
      ...(leaseDurationSeconds !== undefined && { leaseDurationSeconds }),
      ...(typeof acquireTime === 'string' && { acquireTime }),
      ...(typeof renewTime === 'string' && { renewTime }),
      ...(leaderTransitions !== undefined && { leaseTransitions: leaderTransitions }),
    },
  }
}

function toConfigMap({ spec = {}, ...object }: Lease): ConfigMap {
  const record: LeaderRecord = {
    holderIdentity: spec.holderIdentity ?? '',
    leaseDurationSeconds: spec.leaseDurationSeconds ?? 0,
    // metav1.Time: seconds. client-go compares when it saw a record change, not the times in it.
    acquireTime: seconds(spec.acquireTime),
    renewTime: seconds(spec.renewTime),
    leaderTransitions: spec.leaseTransitions ?? 0,
  }
  const annotations = { ...object.metadata.annotations, [LEADER_ANNOTATION]: JSON.stringify(record) }
  return { ...object, apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...object.metadata, annotations } }
}

function seconds(time: string | undefined): string | null {
  return time === undefined ? null : time.replace(/\.\d+/, '')
}
