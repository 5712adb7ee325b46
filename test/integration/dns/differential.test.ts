/**
 * BIND, Knot and our server hold the same generated zones and get the same generated questions; our status, flags, answer and
 * authority must equal those of one of them. SEAMARK_SEED repeats a run, SEAMARK_DIFFERENTIAL sets the questions per zone.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createDnsClient,
  createDnsServer,
  decodeMessage,
  DnsError,
  type DnsServer,
  FLAG,
  isZoneFileError,
  loadZoneFile,
  type Message,
  rcodeName,
  recordText,
  type ServerAddress,
} from '@seamark/dns'
import { needs } from '@seamark/kit'
import { type GeneratedQuestion, generateQuestion, type GeneratedZone, generateZone } from './generate.ts'
import { type Peer, startBind, startKnot } from './peers.ts'
import { oddPackets, sendRaw } from './packets.ts'
import { SeededRandom } from './random.ts'

const SEED = Number(process.env['SEAMARK_SEED'])
const ZONES = 12
const QUESTIONS = Number(process.env['SEAMARK_DIFFERENTIAL'] ?? 120)

/** What must be equal: canonical, order of records aside. */
function normalize(message: Message): string {
  const flags = [FLAG.AA, FLAG.TC, FLAG.RD, FLAG.RA, FLAG.AD]
    .filter((bit) => (message.flags & bit) !== 0)
    .map((bit) => bit.toString(16))
  const isCut = (message.flags & FLAG.TC) !== 0
  // As a set: Knot repeats the records of a chain that runs in a circle.
  const section = (records: Message['answers']) =>
    [...new Set(records.map((record) => recordText(record).toLowerCase()))].toSorted()
  // How much of a truncated answer is kept is a server's own choice; the client throws it away.
  const body = isCut
    ? ['truncated']
    : ['answer', ...section(message.answers), 'authority', ...section(message.authorities)]
  const edns = message.edns === undefined ? 'none' : `version ${message.edns.version}${message.edns.isDo ? ' do' : ''}`
  return [rcodeName(message.rcode), `flags ${flags.join(' ')}`, `edns ${edns}`, ...body].join('\n')
}

describe.skipIf(!needs('named', 'knotd'))(`BIND, Knot and we on the same questions (seed ${SEED})`, () => {
  const zones: GeneratedZone[] = []
  const client = createDnsClient({ timeoutMs: 3000 })
  let bind: Peer
  let knot: Peer
  let ours: DnsServer

  beforeAll(async () => {
    const random = new SeededRandom(SEED)
    for (let i = 0; i < ZONES; i++) zones.push(generateZone(random, i))
    const loaded = zones.map((zone) => {
      const result = loadZoneFile(zone.text, { file: zone.origin })
      if (isZoneFileError(result)) throw new Error(`${result.file}:${result.line}: ${result.reason}\n${zone.text}`)
      return result
    })
    ours = await createDnsServer({ zones: loaded, listen: [{ address: '127.0.0.1', port: 0 }] })
    ;[bind, knot] = await Promise.all([startBind(zones), startKnot(zones)])
  })

  afterAll(async () => {
    await client.close()
    await Promise.allSettled([bind?.close(), knot?.close(), ours?.close()])
  })

  async function ask(
    server: ServerAddress,
    question: GeneratedQuestion,
    transport: 'udp' | 'tcp' = 'udp',
  ): Promise<string> {
    const { message } = await client.query({
      server,
      transport,
      name: question.name,
      type: question.type,
      hasEdns: question.ednsSize !== undefined,
      ...(question.ednsSize !== undefined && { ednsSize: question.ednsSize }),
      isDo: question.isDo,
      flags: question.flags,
      isTruncationKept: true,
    })
    return normalize(message)
  }

  it('answers as BIND or Knot does', async () => {
    const random = new SeededRandom(SEED + 1)
    const differences: string[] = []
    for (const zone of zones) {
      for (let i = 0; i < QUESTIONS; i++) {
        const question = generateQuestion(random, zone)
        const [a, b, c] = await Promise.all([
          ask(bind.address, question),
          ask(knot.address, question),
          ask(ours.addresses[0]!, question),
        ])
        if (c === a || c === b) continue
        // Near the limit of the packet one server compresses a little better: the whole answer is right too.
        const whole = await Promise.all([ask(bind.address, question, 'tcp'), ask(knot.address, question, 'tcp')])
        if (whole.includes(c)) continue
        differences.push(`${JSON.stringify(question)}\n--- BIND\n${a}\n--- Knot\n${b}\n--- ours\n${c}\n`)
      }
    }
    expect(
      differences.slice(0, 5).join('\n'),
      `${differences.length} of ${ZONES * QUESTIONS} differ; SEAMARK_SEED=${SEED}`,
    ).toBe('')
  })

  it('answers odd packets as BIND or Knot does', async () => {
    const shape = (answer: Buffer | undefined): string => {
      if (answer === undefined) return 'silence'
      const message = decodeMessage(answer)
      if (message instanceof DnsError) return message.message
      const { flags, opcode, questions, answers, authorities, edns } = message
      const counts = [questions.length, answers.length, authorities.length].join('/')
      return [
        rcodeName(message.rcode),
        flags.toString(16),
        opcode,
        counts,
        edns === undefined ? 'plain' : `edns ${edns.version} ${edns.isDo}`,
      ].join(' ')
    }
    const differences: string[] = []
    for (const { name, bytes } of oddPackets()) {
      // Hidden on purpose: both peers answer with their version.
      if (name === 'version.bind') continue
      const [a, b, c] = await Promise.all(
        [bind.address, knot.address, ours.addresses[0]!].map(async (server) =>
          shape(await sendRaw(server, bytes, 500)),
        ),
      )
      if (c !== a && c !== b) differences.push(`${name}: BIND ${a} | Knot ${b} | ours ${c}`)
    }
    expect(differences).toEqual([])
  })
})
