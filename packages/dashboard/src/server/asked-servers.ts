/** Asks DNS servers for a host, as its clients do: the authoritative ones, and the resolvers of the configuration. */
import { createDnsClient, decodePolicy, type DnsClient, groupRecords, type Message, POLICY_TYPE } from '@seamark/dns'
import { messageOf } from '@seamark/kube'
import { ADDRESS_TYPES, askServer, type FindServers, serversOf } from '@seamark/operator'
import type { ServerAnswerView } from '../api/host-page.ts'
import type { AnswerView } from '../api/state.ts'

type Answers = Message['answers']
type Records = ServerAnswerView['records']

const DEADLINE_MS = 2_000
const MAX_SERVERS = 8

export interface AskedServersDeps {
  readonly findServers: FindServers
  /** `ADDRESS` or `ADDRESS:PORT`. */
  readonly resolvers: readonly string[]
}

export class AskedServers {
  readonly #deps: AskedServersDeps
  readonly #client: DnsClient = createDnsClient({ tries: 1 })

  constructor(deps: AskedServersDeps) {
    this.#deps = deps
  }

  /** `wanted`: what the host should answer; `bands`: what it answered until lately. */
  async ask(
    name: string,
    {
      wanted,
      isPart,
      bands,
    }: { readonly wanted: readonly string[]; readonly isPart: boolean; readonly bands: readonly AnswerView[] },
    signal: AbortSignal,
  ): Promise<ServerAnswerView[]> {
    const found = await this.#deps.findServers(name).catch(() => [])
    const judge = (records: Records, kind: ServerAnswerView['kind']): ServerAnswerView['state'] => {
      const values = [...new Set(records.map(({ value }) => value))]
      if (values.length === 0) return wanted.length === 0 ? 'right' : 'nothing'
      const isRight =
        isPart || kind === 'resolver' ? values.every((value) => wanted.includes(value)) : isSame(values, wanted)
      if (isRight) return 'right'
      const isFormer = values.every((value) => wanted.includes(value) || bands.some(({ address }) => address === value))
      return kind === 'resolver' && isFormer ? 'cached' : 'wrong'
    }
    const asked = found.slice(0, MAX_SERVERS).map(async (server): Promise<ServerAnswerView> => {
      const about = { server: server.name, kind: 'authoritative' as const, at: new Date().toISOString() }
      const answer = await askServer(this.#client, { name, types: ADDRESS_TYPES }, server, signal)
      if ('why' in answer) return { ...about, state: 'unread', fault: answer.why, records: [] }
      const records = recordsOf(answer.answers)
      return { ...about, state: judge(records, 'authoritative'), records }
    })
    const resolved = serversOf(this.#deps.resolvers.slice(0, MAX_SERVERS)).map(
      async ({ name: server, addresses: [address] }): Promise<ServerAnswerView> => {
        const about = { server, kind: 'resolver' as const, at: new Date().toISOString() }
        if (address === undefined) return { ...about, state: 'unread', fault: 'it has no address', records: [] }
        try {
          const question = { server: address, name, isRecursive: true, deadlineMs: DEADLINE_MS, signal }
          const replies = await Promise.all(
            ['A', 'AAAA'].map(async (type) => this.#client.query({ ...question, type })),
          )
          const records = recordsOf(replies.flatMap(({ message }) => [...message.answers]))
          return { ...about, state: judge(records, 'resolver'), records }
        } catch (error) {
          return { ...about, state: 'unread', fault: messageOf(error), records: [] }
        }
      },
    )
    return Promise.all([...asked, ...resolved])
  }

  async close(): Promise<void> {
    await this.#client.close()
  }
}

/** With a policy an answer has a part of the records: those of the policy are what further answers have. */
function recordsOf(answers: Answers): Records {
  const plain = groupRecords(answers.filter(({ type }) => type !== POLICY_TYPE))
    .filter(({ type }) => ['A', 'AAAA', 'CNAME'].includes(type))
    .flatMap(({ type, ttl, values }) => values.map((value) => ({ type, value: value.replace(/\.$/, ''), ttl })))
  const known = new Set(plain.map(({ value }) => value))
  const policies = answers.flatMap(({ type, data, ttl }) => {
    const policy = type === POLICY_TYPE ? decodePolicy(data) : undefined
    if (policy === undefined) return []
    const best = Math.min(...policy.entries.map(({ priority = 0 }) => priority))
    const isTotal = policy.entries.every(({ weight = 1 }) => weight === 0)
    return policy.entries
      .filter(
        ({ value, weight = 1, priority = 0 }) => priority === best && (weight > 0 || isTotal) && !known.has(value),
      )
      .map(({ value }) => ({ type: policy.type, value, ttl }))
  })
  return [...plain, ...policies].toSorted((a, b) => (a.value < b.value ? -1 : 1))
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value) => b.includes(value))
}
