/** Deletes exactly the object that was read: another one that took its name in the meantime stays. */
import { type Client, Conflict, type Kind, NotFound } from '@seamark/kube'
import { type Immutable, keyOf, type Obj } from '@seamark/kube/object'

export async function deleteExactly(
  client: Pick<Client, 'delete'>,
  kind: Kind,
  { metadata }: Immutable<Obj>,
): Promise<void> {
  const { uid, deletionTimestamp } = metadata
  if (deletionTimestamp !== undefined || uid === undefined) return
  try {
    await client.delete(kind, keyOf({ metadata }), { precondition: { uid } })
  } catch (error) {
    // 404: it is gone. 409: the name belongs to another object.
    if (!(error instanceof NotFound) && !(error instanceof Conflict)) throw error
  }
}
