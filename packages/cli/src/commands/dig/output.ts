/** Responses in the output format of dig. */
import {
  decodeExtendedError,
  decodeSubnet,
  FLAG,
  type Message,
  OPTION,
  opcodeName,
  rcodeName,
  type Reply,
  type Resource,
} from '@seamark/dns'
import type { DigArguments, Section } from './arguments.ts'
import { dataText, questionLine, recordLine } from './columns.ts'

const FLAG_NAMES: ReadonlyArray<readonly [number, string]> = [
  [FLAG.QR, 'qr'],
  [FLAG.AA, 'aa'],
  [FLAG.TC, 'tc'],
  [FLAG.RD, 'rd'],
  [FLAG.RA, 'ra'],
  [FLAG.AD, 'ad'],
  [FLAG.CD, 'cd'],
]

/** RFC 8914 §4, by code. */
const EXTENDED_ERRORS: readonly string[] = [
  'Other',
  'Unsupported DNSKEY Algorithm',
  'Unsupported DS Digest Type',
  'Stale Answer',
  'Forged Answer',
  'DNSSEC Indeterminate',
  'DNSSEC Bogus',
  'Signature Expired',
  'Signature Not Yet Valid',
  'DNSKEY Missing',
  'RRSIGs Missing',
  'No Zone Key Bit Set',
  'NSEC Missing',
  'Cached Error',
  'Not Ready',
  'Blocked',
  'Censored',
  'Filtered',
  'Prohibited',
  'Stale NXDOMAIN Answer',
  'Not Authoritative',
  'Not Supported',
  'No Reachable Authority',
  'Network Error',
  'Invalid Data',
]

const flagNames = (flags: number): string =>
  FLAG_NAMES.filter(([bit]) => (flags & bit) !== 0)
    .map(([, name]) => ` ${name}`)
    .join('')

/** Whether the cookie in the response begins with the one we sent, and contains a server cookie (RFC 7873 §5.3). */
function cookieVerdict(data: Uint8Array, sent: Uint8Array | undefined): string {
  if (sent === undefined) return ''
  const isOurs = Buffer.from(data.subarray(0, sent.length)).equals(sent)
  if (!isOurs) return ' (bad)'
  return data.length === sent.length ? ' (echoed)' : ' (good)'
}

function optionText(code: number, data: Uint8Array, cookie: Uint8Array | undefined): string {
  const hex = Buffer.from(data).toString('hex')
  switch (code) {
    case OPTION.COOKIE:
      return `; COOKIE: ${hex}${cookieVerdict(data, cookie)}`
    case OPTION.NSID:
      return `; NSID: ${hex}`
    case OPTION.CLIENT_SUBNET: {
      const subnet = decodeSubnet(data)
      return `; CLIENT-SUBNET: ${subnet.address}/${subnet.sourcePrefix}/${subnet.scopePrefix}`
    }
    case OPTION.EXTENDED_ERROR: {
      const error = decodeExtendedError(data)
      const name = EXTENDED_ERRORS[error.code]
      return `; EDE: ${error.code}${name === undefined ? '' : ` (${name})`}${error.text === '' ? '' : `: (${error.text})`}`
    }
  }
  return `; OPT=${code}: ${hex}`
}

function header(message: Message, cookie: Uint8Array | undefined): string[] {
  const { edns } = message
  const counts = [
    `QUERY: ${message.questions.length}`,
    `ANSWER: ${message.answers.length}`,
    `AUTHORITY: ${message.authorities.length}`,
    `ADDITIONAL: ${message.additionals.length + (edns === undefined ? 0 : 1) + (message.tsig === undefined ? 0 : 1)}`,
  ]
  const isRecursionMissed = (message.flags & (FLAG.RD | FLAG.RA)) === FLAG.RD
  return [
    ';; Got answer:',
    `;; ->>HEADER<<- opcode: ${opcodeName(message.opcode)}, status: ${rcodeName(message.rcode)}, id: ${message.id}`,
    `;; flags:${flagNames(message.flags)}; ${counts.join(', ')}`,
    ...(isRecursionMissed ? [';; WARNING: recursion requested but not available'] : []),
    '',
    ...(edns === undefined
      ? []
      : [
          ';; OPT PSEUDOSECTION:',
          `; EDNS: version: ${edns.version}, flags:${edns.isDo ? ' do' : ''}; udp: ${edns.size}`,
          ...edns.options.map(({ code, data }) => optionText(code, data, cookie)),
        ]),
  ]
}

/** The lines before the answer. `words` are the arguments as they were given. */
export const greeting = (version: string, words: readonly string[]): string[] => [
  '',
  `; <<>> seamark dig ${version} <<>> ${words.join(' ')}`,
  '; (1 server found)',
  ';; global options: +cmd',
]

export interface Shown {
  readonly args: DigArguments
  readonly when: Date
  /** The cookie of the query. */
  readonly cookie?: Uint8Array
}

export function replyText(reply: Reply, { args, when, cookie }: Shown): string[] {
  const { message } = reply
  if (args.isShort) return message.answers.map((record) => dataText(record, args.splitAt))
  const has = (name: Section) => args.sections.has(name)
  const hasTitle = has('comments')
  const section = (name: Section, lines: readonly string[]): string[] => {
    if (!has(name) || lines.length === 0) return []
    return hasTitle ? [`;; ${name.toUpperCase()} SECTION:`, ...lines, ''] : [...lines]
  }
  const records = (list: readonly Resource[]) => list.map((record) => recordLine(record, args))
  return [
    ...(hasTitle ? header(message, cookie) : []),
    ...section(
      'question',
      message.questions.map((question) => questionLine(question, args)),
    ),
    ...section('answer', records(message.answers)),
    ...section('authority', records(message.authorities)),
    ...section('additional', records(message.additionals)),
    ...(has('stats') ? [...statistics(reply, when), `;; MSG SIZE  rcvd: ${reply.size}`, ''] : []),
  ]
}

/** As date(1) in the C locale prints it, in the zone of the machine. */
function dateText(when: Date): string {
  const parts = new Map(
    new Intl.DateTimeFormat('en-US', {
      weekday: 'short',
      month: 'short',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      year: 'numeric',
      timeZoneName: 'short',
    })
      .formatToParts(when)
      .map(({ type, value }) => [type, value]),
  )
  const get = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? ''
  const time = `${get('hour')}:${get('minute')}:${get('second')}`
  return [get('weekday'), get('month'), get('day'), time, get('timeZoneName'), get('year')].join(' ')
}

export function statistics(reply: Pick<Reply, 'server' | 'durationMs' | 'transport'>, when: Date): string[] {
  const { address, port = 53 } = reply.server
  return [
    `;; Query time: ${Math.round(reply.durationMs)} msec`,
    `;; SERVER: ${address}#${port}(${address}) (${reply.transport.toUpperCase()})`,
    `;; WHEN: ${dateText(when)}`,
  ]
}
