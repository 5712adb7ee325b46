/**
 * A zone in ConfigMaps, for a manager without a folder of its own (`dns.dataDir`): one object with the journal and the number
 * of the current snapshot, and one object for each part of a snapshot.
 *
 * Guarantees: a change is in the API server before `append` resolves. The journal and the snapshot it continues are replaced
 * together, in one write of one object, so that a crash at any point leaves either the old pair or the new one.
 * Caveats: each change sends the whole journal, at most `JOURNAL_OCTETS`; a zone of many names is better kept in a folder.
 */
import { createHash } from 'node:crypto'
import { deltaFrame, DnsError, type Fqdn, headFrame, replay, snapshotFrames } from '@seamark/dns'
import type { StoredZone, Zone, ZoneDelta, ZoneStore } from '@seamark/dns'
import { AlreadyExists, type Client, ConfigMap, Conflict, messageOf } from '@seamark/kube'

/** A ConfigMap has at most 1 MiB, in base64. */
const PART_OCTETS = 700_000
const JOURNAL_OCTETS = 200_000

const LABELS = { 'app.kubernetes.io/managed-by': 'seamark', 'seamark.io/state': 'dns-zone' }

interface Head {
  readonly resourceVersion: string
  readonly generation: number
  readonly parts: number
  readonly journal: Buffer
  /** Every wanted record is in it. Until then no replica answers from it. */
  readonly isComplete: boolean
}

export interface ConfigMapStoreOptions {
  readonly client: Client
  readonly namespace: string
  readonly origin: Fqdn
  /** Only the process that leads writes; the copies of the others, and of one that observes, are not stored. */
  readonly isWriting: () => boolean
  /** A change of the process that writes: it fails when the process does not write any more. @default it is not stored */
  readonly mustWrite?: () => boolean
}

export class ConfigMapStore implements ZoneStore {
  readonly #client: Client
  readonly #namespace: string
  readonly #origin: Fqdn
  readonly #isWriting: () => boolean
  readonly #mustWrite: () => boolean
  readonly #name: string
  #head: Head | undefined
  #uid: string | undefined
  #startsIncomplete = false
  /** The last write, when its result is unknown: it may be in effect although it was never acknowledged. */
  #unsure: Head | undefined

  constructor({ client, namespace, origin, isWriting, mustWrite = () => false }: ConfigMapStoreOptions) {
    this.#client = client
    this.#namespace = namespace
    this.#origin = origin
    this.#isWriting = isWriting
    this.#mustWrite = mustWrite
    this.#name = `seamark-dns-${createHash('sha256').update(origin).digest('hex').slice(0, 16)}`
  }

  /** False: no replica may answer from what is stored, because records are missing. */
  get isComplete(): boolean {
    return this.#head?.isComplete ?? !this.#startsIncomplete
  }

  /** Before the first `replace` of a zone that has none of its records yet. */
  startIncomplete(): void {
    if (this.#head === undefined) this.#startsIncomplete = true
  }

  async markComplete(_zone?: Zone): Promise<void> {
    this.#startsIncomplete = false
    const head = this.#head
    if (head === undefined || head.isComplete || !this.#mayWrite()) return
    await this.#perform(async () => this.#writeHead({ ...head, isComplete: true }))
  }

  /** UID of the object that was read last. */
  get uid(): string | undefined {
    return this.#uid
  }

  async load(): Promise<StoredZone | undefined> {
    return this.#read(undefined)
  }

  /** Undefined: nothing is stored, or nothing has changed since it was read or written last. */
  async reload(): Promise<StoredZone | undefined> {
    return this.#read(this.#head?.resourceVersion)
  }

  async #read(known: string | undefined): Promise<StoredZone | undefined> {
    const found = await this.#client.find(ConfigMap, `${this.#namespace}/${this.#name}`)
    if (found === undefined || (known !== undefined && found.metadata.resourceVersion === known)) return undefined
    this.#uid = found.metadata.uid
    const { generation = '0', parts = '0' } = found.data ?? {}
    const head: Head = {
      resourceVersion: found.metadata.resourceVersion ?? '',
      generation: Number(generation),
      parts: Number(parts),
      journal: Buffer.from(found.binaryData?.['journal'] ?? '', 'base64'),
      isComplete: found.data?.['complete'] !== 'false',
    }
    const snapshot: Buffer[] = []
    for (let part = 0; part < head.parts; part++) {
      const name = this.#partName(head.generation, part)
      const object = await this.#client.find(ConfigMap, `${this.#namespace}/${name}`)
      if (object === undefined) throw this.#corrupt(`ConfigMap ${this.#namespace}/${name} does not exist`)
      snapshot.push(Buffer.from(object.binaryData?.['part'] ?? '', 'base64'))
    }
    try {
      const stored = replay(this.#origin, Buffer.concat(snapshot), [head.journal])
      this.#head = head
      this.#unsure = undefined
      return stored
    } catch (error) {
      if (!(error instanceof DnsError)) throw error
      throw new DnsError(error.code, `ConfigMap ${this.#namespace}/${this.#name} cannot be read: ${error.message}`, {
        cause: error,
      })
    }
  }

  async append(delta: ZoneDelta, zone: Zone): Promise<void> {
    if (!this.#mayWrite()) return
    const head = this.#head
    const frame = deltaFrame(delta)
    if (head === undefined || head.journal.length + frame.length > JOURNAL_OCTETS) {
      await this.replace(zone)
      return
    }
    await this.#perform(async () => this.#writeHead({ ...head, journal: Buffer.concat([head.journal, frame]) }))
  }

  async replace(zone: Zone): Promise<void> {
    if (!this.#mayWrite()) return
    await this.#perform(async () => {
      const before = this.#head
      const generation = (before?.generation ?? 0) + 1
      const bytes = Buffer.concat([...snapshotFrames(zone)])
      const parts = Math.ceil(bytes.length / PART_OCTETS)
      for (let part = 0; part < parts; part++) {
        const content = bytes.subarray(part * PART_OCTETS, (part + 1) * PART_OCTETS)
        await this.#writePart(this.#partName(generation, part), content)
      }
      await this.#writeHead({
        resourceVersion: before?.resourceVersion ?? '',
        generation,
        parts,
        journal: headFrame(this.#origin, zone.serial),
        isComplete: this.isComplete,
      })
      if (before === undefined) return
      for (let part = 0; part < before.parts; part++) {
        const name = this.#partName(before.generation, part)
        // What is left of an old snapshot is not read any more.
        await this.#client.delete(ConfigMap, `${this.#namespace}/${name}`).catch(() => undefined)
      }
    })
  }

  async close(): Promise<void> {}

  #mayWrite(): boolean {
    if (this.#isWriting()) return true
    if (!this.#mustWrite()) return false
    throw new DnsError('STORE_WRITE', `zone ${this.#origin} is not changed: this process does not lead any more`)
  }

  #partName(generation: number, part: number): string {
    return `${this.#name}-${generation}-${part}`
  }

  #corrupt(why: string): DnsError {
    return new DnsError('STORE_CORRUPT', `the snapshot of zone ${this.#origin} is incomplete: ${why}`)
  }

  async #perform(write: () => Promise<void>): Promise<void> {
    try {
      if (this.#unsure !== undefined) await this.#settle(this.#unsure)
      await write()
    } catch (cause) {
      const where = `ConfigMap ${this.#namespace}/${this.#name}`
      if (cause instanceof DnsError) throw cause
      if (cause instanceof Conflict || cause instanceof AlreadyExists)
        throw new DnsError('STORE_TAKEN', `another process writes zone ${this.#origin} to ${where}`, { cause })
      throw new DnsError('STORE_WRITE', `zone ${this.#origin} cannot be written to ${where}: ${messageOf(cause)}`, {
        cause,
      })
    }
  }

  /** Continues from the last acknowledged state, on top of whichever of the two states is stored. */
  async #settle(unsure: Head): Promise<void> {
    const found = await this.#client.find(ConfigMap, `${this.#namespace}/${this.#name}`)
    const journal = found?.binaryData?.['journal']
    const isOurs = [this.#head, unsure].some(
      (head) =>
        found?.data?.['generation'] === String(head?.generation) && journal === head?.journal.toString('base64'),
    )
    if (found !== undefined && !isOurs)
      throw new DnsError('STORE_TAKEN', `another process writes zone ${this.#origin} to ConfigMap ${this.#name}`)
    const resourceVersion = found?.metadata.resourceVersion ?? ''
    if (this.#head !== undefined) this.#head = { ...this.#head, resourceVersion }
    else if (found !== undefined) this.#head = { ...unsure, resourceVersion }
    this.#unsure = undefined
  }

  async #writeHead(next: Head): Promise<void> {
    // `#settle` may have learned another version since `next` was made.
    const head = { ...next, resourceVersion: this.#head?.resourceVersion ?? '' }
    this.#unsure = head
    const { resourceVersion, generation, parts, journal, isComplete } = head
    const object = {
      metadata: { name: this.#name, namespace: this.#namespace, labels: LABELS },
      data: {
        zone: this.#origin,
        generation: String(generation),
        parts: String(parts),
        ...(!isComplete && { complete: 'false' }),
      },
      binaryData: { journal: journal.toString('base64') },
    }
    const written =
      resourceVersion === ''
        ? await this.#client.create(ConfigMap, object)
        : await this.#client.update(ConfigMap, { ...object, metadata: { ...object.metadata, resourceVersion } })
    this.#uid = written.metadata.uid
    this.#head = { ...head, resourceVersion: written.metadata.resourceVersion ?? '' }
    this.#unsure = undefined
  }

  /** A crash may have left a part of the same name: it is replaced. */
  async #writePart(name: string, content: Buffer): Promise<void> {
    const object = {
      metadata: { name, namespace: this.#namespace, labels: LABELS },
      binaryData: { part: content.toString('base64') },
    }
    try {
      await this.#client.create(ConfigMap, object)
    } catch (error) {
      if (!(error instanceof AlreadyExists)) throw error
      const found = await this.#client.get(ConfigMap, `${this.#namespace}/${name}`)
      const { resourceVersion = '' } = found.metadata
      await this.#client.update(ConfigMap, { ...object, metadata: { ...object.metadata, resourceVersion } })
    }
  }
}
