/**
 * A zone in ConfigMaps with a copy in a folder of this process, for a start while the API server is away.
 *
 * Flow: a change is stored in the ConfigMaps, then in the copy; what is read from the ConfigMaps replaces a copy that differs.
 * Guarantees: the ConfigMaps decide. A copy that fails never stops a change, and one that is damaged, or was made of other
 * ConfigMaps than those of this installation, is not answered from; it is made anew when the ConfigMaps are read.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Fqdn, FolderStore, type StoredZone, type Zone, type ZoneDelta, type ZoneStore } from '@seamark/dns'
import { messageOf } from '@seamark/kube'
import type { ConfigMapStore } from './config-map-store.ts'

export interface CopiedStoreOptions {
  readonly truth: ConfigMapStore
  readonly folder: string
  /** Of the ConfigMaps. */
  readonly namespace: string
  readonly origin: Fqdn
  readonly onWarning: (why: string) => void
}

export class CopiedStore implements ZoneStore {
  readonly #options: CopiedStoreOptions
  readonly #folder: string
  /** Has the UID of the ConfigMap that the copy was made of. */
  readonly #uidFile: string
  #copy: FolderStore
  /** Serial of the copy; undefined: it has to be made anew. */
  #serial: number | undefined

  constructor(options: CopiedStoreOptions) {
    this.#options = options
    const { folder, namespace, origin } = options
    // Apart from the zones of `dns.dataDir`, which are no copies.
    this.#folder = join(folder, 'copies', encodeURIComponent(namespace))
    this.#uidFile = join(this.#folder, `${origin === '.' ? '@' : encodeURIComponent(origin)}uid`)
    this.#copy = this.#open()
  }

  #open(): FolderStore {
    const { origin, onWarning } = this.#options
    return new FolderStore({ folder: this.#folder, origin, onWarning })
  }

  /** What was stored here last; undefined when there is nothing that can be used. */
  async loadCopy(): Promise<StoredZone | undefined> {
    try {
      const stored = await this.#copy.load()
      this.#serial = stored?.zone.serial
      return stored
    } catch (error) {
      this.#warn('the local copy cannot be used and is made anew', error)
      return undefined
    }
  }

  async load(): Promise<StoredZone | undefined> {
    const stored = await this.#options.truth.load()
    if (stored !== undefined && this.isComplete) await this.#bringUp(stored.zone)
    return stored
  }

  /** Undefined: nothing is stored, or nothing has changed since it was read or written last. */
  async reload(): Promise<StoredZone | undefined> {
    const stored = await this.#options.truth.reload()
    if (stored !== undefined && this.isComplete) await this.#bringUp(stored.zone)
    return stored
  }

  get isComplete(): boolean {
    return this.#options.truth.isComplete
  }

  startIncomplete(): void {
    this.#options.truth.startIncomplete()
  }

  async markComplete(zone: Zone): Promise<void> {
    await this.#options.truth.markComplete()
    if (this.isComplete) await this.#bringUp(zone)
  }

  /** Whether the copy was made of the ConfigMaps that were read; true when there was none. */
  async isOfTruth(): Promise<boolean> {
    const { uid } = this.#options.truth
    if (uid === undefined) return true
    const recorded = await readFile(this.#uidFile, 'utf8').catch(() => uid)
    return recorded === uid
  }

  async append(delta: ZoneDelta, zone: Zone): Promise<void> {
    await this.#options.truth.append(delta, zone)
    if (!this.isComplete) return
    if (this.#serial === undefined) return this.#bringUp(zone)
    await this.#write(zone, async () => this.#copy.append(delta, zone))
  }

  async replace(zone: Zone): Promise<void> {
    await this.#options.truth.replace(zone)
    if (this.isComplete) await this.#bringUp(zone)
  }

  async close(): Promise<void> {
    await this.#copy.close()
  }

  async #bringUp(zone: Zone): Promise<void> {
    const isSame = this.#serial === zone.serial && (await this.isOfTruth())
    if (isSame) return
    await this.#write(zone, async () => {
      await this.#copy.replace(zone)
      const { uid } = this.#options.truth
      if (uid === undefined) return
      await mkdir(this.#folder, { recursive: true })
      await writeFile(this.#uidFile, uid)
    })
  }

  async #write(zone: Zone, write: () => Promise<void>): Promise<void> {
    try {
      await write()
      this.#serial = zone.serial
    } catch (error) {
      this.#serial = undefined
      this.#warn(
        'the local copy is not written; a restart while the API server is away answers from an older one',
        error,
      )
    }
  }

  #warn(what: string, error: unknown): void {
    this.#options.onWarning(`${what}: ${messageOf(error)}`)
  }
}
