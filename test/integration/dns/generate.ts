/**
 * Generated zones and questions for the differential test: every feature of the answer path in small and crowded zones, so
 * that features meet. The same seed gives the same zones.
 */
import type { SeededRandom } from './random.ts'

export interface GeneratedZone {
  readonly origin: string
  readonly text: string
  readonly names: readonly string[]
}

const LABELS = [
  'a',
  'b',
  'c',
  'www',
  'x-1',
  '_tcp',
  '*',
  'A-B',
  '\\000\\255',
  'd\\.ot',
  'q\\"uote',
  '-',
  '1',
  'xn--tda',
]

const TYPES = [
  'A',
  'AAAA',
  'TXT',
  'MX',
  'NS',
  'CNAME',
  'SOA',
  'SRV',
  'CAA',
  'PTR',
  'HTTPS',
  'SVCB',
  'TLSA',
  'NAPTR',
  'DNAME',
  'DS',
  'TYPE65280',
  'ANY',
]

function value(type: string, random: SeededRandom, target: () => string): string {
  const n = random.below(250)
  switch (type) {
    case 'A':
      return `192.0.2.${n}`
    case 'AAAA':
      return `2001:db8::${n.toString(16)}`
    case 'TXT':
      return `"text ${n}" "\\"\\\\\\200${'x'.repeat(random.below(200))}"`
    case 'MX':
      return `${n} ${target()}`
    case 'SRV':
      return `1 2 ${n} ${target()}`
    case 'CAA':
      return `0 issue "ca${n}.test"`
    case 'PTR':
      return target()
    case 'HTTPS':
      return `1 . alpn="h2,h3" port=${n} ipv4hint=192.0.2.1,192.0.2.${n}`
    case 'SVCB':
      return `${n} ${target()}`
    case 'TLSA':
      return `3 1 1 ${n.toString(16).padStart(2, '0').repeat(32)}`
    case 'NAPTR':
      return `1 ${n} "s" "SIP+D2U" "" ${target()}`
  }
  return `\\# 3 ${n.toString(16).padStart(2, '0')}00ff`
}

const DATA_TYPES = [
  'A',
  'A',
  'A',
  'AAAA',
  'TXT',
  'MX',
  'SRV',
  'CAA',
  'PTR',
  'HTTPS',
  'SVCB',
  'TLSA',
  'NAPTR',
  'TYPE65280',
]

/** A name below another, by text: labels here hold no dot but escaped ones. */
const isBelow = (name: string, above: string): boolean => name.endsWith(`.${above}`)

export function generateZone(random: SeededRandom, index: number): GeneratedZone {
  const origin = `z${index}.test.`
  const names = new Set<string>()
  const name = () => {
    const labels = Array.from({ length: 1 + random.below(4) }, () => random.pick(LABELS))
    return `${labels.join('.')}.${origin}`
  }
  for (let i = 0; i < 8 + random.below(25); i++) names.add(name())
  const all = [...names]
  const target = () => {
    const chance = random.below(10)
    if (chance < 7) return random.pick(all)
    return chance < 9 ? name() : random.pick(['outside.test.', `www.z${(index + 1) % 5}.test.`, origin])
  }
  const lines = [
    `$ORIGIN ${origin}`,
    '$TTL 300',
    `@ IN SOA ns.${origin} host.${origin} ${index + 1} 3600 600 86400 ${30 + random.below(60)}`,
    `@ IN NS ns.${origin}`,
    '@ IN NS ns.outside.test.',
  ]
  if (random.below(2) === 0) lines.push('@ IN A 192.0.2.99')
  const used: string[] = []
  const dnames: string[] = []
  // Parents first: nothing may be below a DNAME, which servers refuse in different ways.
  for (const owner of all.sort((a, b) => a.length - b.length)) {
    if (dnames.some((above) => isBelow(owner, above))) continue
    const isWild = owner.startsWith('*.')
    const kind = random.below(12)
    if (kind === 0 && !isWild && !all.some((other) => isBelow(other, owner))) {
      lines.push(`${owner} DNAME ${random.below(4) === 0 ? `${'l'.repeat(60)}.`.repeat(3) + origin : target()}`)
      dnames.push(owner)
    } else if (kind < 3) lines.push(`${owner} ${random.below(100)} CNAME ${target()}`)
    else if (kind === 3 && !isWild) {
      lines.push(`${owner} NS ns1.${owner}`, `ns1.${owner} A 192.0.2.200`, `ns1.${owner} AAAA 2001:db8::200`)
      if (random.below(2) === 0) lines.push(`${owner} NS ${random.pick(['ns.outside.test.', `ns.${origin}`])}`)
      if (random.below(2) === 0) lines.push(`${owner} DS 1 8 2 ${'ab'.repeat(32)}`)
    } else {
      const types = new Set(Array.from({ length: 1 + random.below(3) }, () => random.pick(DATA_TYPES)))
      for (const type of types) {
        const ttl = random.below(1000)
        const count = type === 'A' || type === 'TXT' ? 1 + random.below(random.below(8) === 0 ? 40 : 3) : 1
        for (let j = 0; j < count; j++) lines.push(`${owner} ${ttl} ${type} ${value(type, random, target)}`)
      }
    }
    used.push(owner)
  }
  lines.push(`ns.${origin} A 192.0.2.53`)
  return { origin, text: `${lines.join('\n')}\n`, names: [...used, `ns.${origin}`, origin] }
}

export interface GeneratedQuestion {
  readonly name: string
  readonly type: string
  readonly ednsSize: number | undefined
  readonly isDo: boolean
  readonly flags: number
}

export function generateQuestion(random: SeededRandom, zone: GeneratedZone): GeneratedQuestion {
  let name = random.pick(zone.names)
  const twist = random.below(10)
  if (twist < 3) name = `${random.pick(LABELS)}.${name}`
  else if (twist === 3) name = `${random.pick(LABELS)}.${random.pick(LABELS)}.${name}`
  else if (twist === 4 && name !== zone.origin) name = name.slice(name.indexOf('.') + 1)
  else if (twist === 5) name = `${random.pick(LABELS)}.${zone.origin}`
  if (!name.endsWith(zone.origin)) name = zone.origin
  return {
    name,
    type: random.below(3) === 0 ? 'A' : random.pick(TYPES),
    ednsSize: random.pick([undefined, 512, 700, 1232, 1232, 4096]),
    isDo: random.below(4) === 0,
    flags: random.pick([0, 0, 0x0100, 0x0010, 0x0020]),
  }
}
