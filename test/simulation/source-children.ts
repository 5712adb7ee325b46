/**
 * The controller that proves the kit: a ConfigMap labelled `role: source` wants one child ConfigMap for each key of its
 * data. Small, and right: it decides from what it sees, asks the server again before it deletes, and looks at
 * everything anew every ten minutes.
 *
 * `mistake` makes one of three wrong controllers of it, each of a kind that has been found in production.
 */
import type { InProcessFetch } from '@seamark/apiserver'
import { sleep } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import type { Controller, SimulatedProcess } from './scenario.ts'

export type Mistake =
  /** What a list does not show is taken to be gone. */
  | 'deletes on an empty list'
  /** An event that never came is never missed. */
  | 'no resync'
  /** Every attempt makes a new child. */
  | 'non-idempotent step'

export interface ConfigMap extends Obj {
  data?: Record<string, string>
}

const resyncMs = 10 * 60_000
const maxBackoffMs = 30_000
const path = '/api/v1/namespaces/default/configmaps'

/** What the controller has seen of one label selector. */
interface View {
  readonly selector: string
  readonly objects: Map<string, ConfigMap>
}

export function sourceChildren(mistake?: Mistake): Controller {
  return async (process) => {
    const sources: View = { selector: 'role=source', objects: new Map() }
    const children: View = { selector: 'role=child', objects: new Map() }
    let wake: () => void = () => undefined
    const dirty = new Set<string>()
    const mark = (object: ConfigMap) => {
      dirty.add(sourceOf(object))
      wake()
    }
    const markAll = () => [...sources.objects.values(), ...children.objects.values()].forEach(mark)

    const resyncing = mistake === 'no resync' ? Infinity : resyncMs
    const following = [sources, children].map(async (view) => follow(process, view, resyncing, mark, markAll))
    const working = (async () => {
      while (!process.signal.aborted) {
        const [source] = dirty
        if (source === undefined || !(await isSynced())) {
          await new Promise<void>((resolve) => (wake = resolve))
          continue
        }
        dirty.delete(source)
        await withBackoff(process, async () => reconcile(process, source, sources, children, mistake))
      }
    })()
    /** Deciding on one of two lists would delete what the other explains. */
    async function isSynced(): Promise<boolean> {
      return synced.has(sources) && synced.has(children)
    }
    await Promise.all([...following, working])
  }
}

const synced = new WeakSet<View>()

function sourceOf(object: ConfigMap): string {
  return object.metadata.labels?.['source'] ?? object.metadata.name ?? ''
}

/** List, then watch from there, for ever; a list replaces everything seen before. */
async function follow(
  process: SimulatedProcess,
  view: View,
  resyncing: number,
  mark: (object: ConfigMap) => void,
  markAll: () => void,
): Promise<void> {
  const { clock, signal } = process
  while (!signal.aborted) {
    await withBackoff(process, async () => {
      const query = `labelSelector=${view.selector}`
      const list = (await request(process.fetch, 'GET', `${path}?${query}`)) as {
        metadata: { resourceVersion: string }
        items: ConfigMap[]
      }
      const before = [...view.objects.values()]
      view.objects.clear()
      for (const item of list.items) view.objects.set(item.metadata.name ?? '', item)
      synced.add(view)
      before.forEach(mark)
      markAll()
      const ending = new AbortController()
      if (resyncing !== Infinity) clock.after(resyncing, () => ending.abort())
      const from = `${path}?${query}&watch=true&resourceVersion=${list.metadata.resourceVersion}`
      await watch(process.fetch, from, AbortSignal.any([ending.signal, signal]), ({ type, object }) => {
        const name = object.metadata.name ?? ''
        if (type === 'ERROR') return
        if (type === 'DELETED') view.objects.delete(name)
        else if (isNewer(object, view.objects.get(name))) view.objects.set(name, object)
        mark(object)
      })
    })
  }
}

/** Events may come twice or late; a view never goes back. */
function isNewer(object: ConfigMap, known: ConfigMap | undefined): boolean {
  return Number(object.metadata.resourceVersion) >= Number(known?.metadata.resourceVersion ?? 0)
}

async function reconcile(
  process: SimulatedProcess,
  name: string,
  sources: View,
  children: View,
  mistake: Mistake | undefined,
): Promise<void> {
  const { fetch } = process
  const source = sources.objects.get(name)
  const wanted = new Map(Object.entries(source?.data ?? {}))
  const own = [...children.objects.values()].filter((child) => sourceOf(child) === name)
  for (const [key, value] of wanted) {
    const child = own.find((candidate) => candidate.data?.['key'] === key)
    if (child?.data?.['value'] === value) continue
    const intent = childOf(name, key, value)
    if (mistake === 'non-idempotent step' && child === undefined) {
      const made = { ...intent, metadata: { ...intent.metadata, name: undefined, generateName: `${name}-${key}-` } }
      await request(fetch, 'POST', path, made)
      continue
    }
    const at = child?.metadata.name ?? intent.metadata.name
    await request(fetch, 'PATCH', `${path}/${at}?fieldManager=children&force=true`, {
      ...intent,
      metadata: { ...intent.metadata, name: at },
    })
  }
  for (const child of own) {
    const key = child.data?.['key'] ?? ''
    if (wanted.has(key)) continue
    if (mistake !== 'deletes on an empty list' && (await isStillWanted(fetch, name, key))) continue
    const { name: at, uid } = child.metadata
    await request(fetch, 'DELETE', `${path}/${at}`, { preconditions: { uid } }, [404, 409])
  }
}

/** A cache that lacks something proves nothing. */
async function isStillWanted(fetch: InProcessFetch, name: string, key: string): Promise<boolean> {
  const live = (await request(fetch, 'GET', `${path}/${name}`, undefined, [404])) as ConfigMap | undefined
  return live?.data?.[key] !== undefined
}

function childOf(source: string, key: string, value: string) {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${source}-${key}`, labels: { role: 'child', source } },
    data: { key, value },
  }
}

async function withBackoff({ clock, signal }: SimulatedProcess, work: () => Promise<void>): Promise<void> {
  for (let delayMs = 1_000; !signal.aborted; delayMs = Math.min(delayMs * 2, maxBackoffMs)) {
    try {
      await work()
      return
    } catch {
      await sleep(clock, delayMs, signal)
    }
  }
}

/** The object of an answer; undefined for a status in `absent`; anything else that is not 2xx throws. */
async function request(
  fetch: InProcessFetch,
  method: string,
  to: string,
  body?: unknown,
  absent: readonly number[] = [],
): Promise<unknown> {
  const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json'
  const response = await fetch(to, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': type } }),
  })
  const answer: unknown = await response.json()
  if (absent.includes(response.status)) return undefined
  if (!response.ok) throw new Error(`${method} ${to}: ${response.status} ${JSON.stringify(answer)}`)
  return answer
}

interface WatchEvent {
  type: string
  object: ConfigMap
}

/** Ends when the stream does, however it does. */
async function watch(
  fetch: InProcessFetch,
  from: string,
  signal: AbortSignal,
  onEvent: (event: WatchEvent) => void,
): Promise<void> {
  const response = await fetch(from, { signal })
  if (!response.ok || response.body === null) throw new Error(`watch: ${response.status}`)
  let rest = ''
  const decoder = new TextDecoder()
  try {
    for await (const chunk of response.body) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) onEvent(JSON.parse(line) as WatchEvent)
    }
  } catch {
    // A cut stream and our own abort end the same way: with the next list.
  }
}
