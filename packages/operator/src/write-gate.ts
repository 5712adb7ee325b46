/**
 * The one gate between this process and what it may change in Kubernetes: every write of every capability passes it.
 *
 * Place in the flow: around the cluster's client, below controllers, Events, status and guard state. Closed while the
 * kill switch is pulled, and for a process that does not hold its lease. The Lease itself passes: a paused manager stays
 * the one that leads.
 */
import { type Client, type Cluster, KubeError, Lease } from '@seamark/kube'
import type { Kind } from '@seamark/kube/object'

/** Nothing was sent. */
export class WriteRefused extends KubeError {}

/** `check` throws WriteRefused when nothing may be written. */
export function gateCluster(cluster: Cluster, check: () => void): Cluster {
  const client = gateClient(cluster.client, check)
  return {
    name: cluster.name,
    client,
    informers: cluster.informers,
    log: cluster.log,
    close: async () => cluster.close(),
    get stats() {
      return cluster.stats
    },
  } as Cluster
}

function gateClient(client: Client, check: () => void): Client {
  const ask = (kind: Kind): void => {
    if (kind.group !== Lease.group || kind.plural !== Lease.plural) check()
  }
  return {
    ...client,
    create: async (kind, object, options) => {
      ask(kind)
      return client.create(kind, object, options)
    },
    update: async (kind, object, options) => {
      ask(kind)
      return client.update(kind, object, options)
    },
    updateStatus: async (kind, object, options) => {
      ask(kind)
      return client.updateStatus(kind, object, options)
    },
    apply: async (kind, intent, options) => {
      ask(kind)
      return client.apply(kind, intent, options)
    },
    patch: async (kind, key, type, patch, options) => {
      ask(kind)
      return client.patch(kind, key, type, patch, options)
    },
    delete: async (kind, key, options) => {
      ask(kind)
      return client.delete(kind, key, options)
    },
    deleteCollection: async (kind, options) => {
      ask(kind)
      return client.deleteCollection(kind, options)
    },
    request: async (request) => {
      if (request.method !== 'GET') check()
      return client.request(request)
    },
  }
}
