/** Errors of writes that the store rejects, with the messages of kube-apiserver when etcd rejects them. */

export class StoreRefusal extends Error {}

export class ObjectTooLarge extends StoreRefusal {
  constructor() {
    super('etcdserver: request is too large')
  }
}

/** Deletions, and updates that make an object no larger, pass. */
export class StoreFull extends StoreRefusal {
  constructor() {
    super('etcdserver: mvcc: database space exceeded')
  }
}
