/** Replies as dig prints them. */
import {
  className,
  decodeExtendedError,
  decodeSubnet,
  FLAG,
  type Message,
  OPTION,
  opcodeName,
  rcodeName,
  rdataToText,
  recordText,
  type Reply,
  type Resource,
  typeName,
} from '@seamark/dns'
import type { DigArguments, Section } from './arguments.ts'

const FLAG_NAMES: ReadonlyArray<readonly [number, string]> = [
  [FLAG.QR, 'qr'],
  [FLAG.AA, 'aa'],
  [FLAG.TC, 'tc'],
  [FLAG.RD, 'rd'],
  [FLAG.RA, 'ra'],
  [FLAG.AD, 'ad'],
  [FLAG.CD, 'cd'],
]

const flagNames = (flags: number): string =>
  FLAG_NAMES.filter(([bit]) => (flags & bit) !== 0)
    .map(([, name]) => name)
    .join(' ')

function optionText(code: number, data: Uint8Array): string {
  switch (code) {
    case OPTION.COOKIE:
      return `; COOKIE: ${Buffer.from(data).toString('hex')}`
    case OPTION.NSID:
      return `; NSID: ${Buffer.from(data).toString('hex')}`
    case OPTION.CLIENT_SUBNET: {
      const subnet = decodeSubnet(data)
      return `; CLIENT-SUBNET: ${subnet.address}/${subnet.sourcePrefix}/${subnet.scopePrefix}`
    }
    case OPTION.EXTENDED_ERROR: {
      const error = decodeExtendedError(data)
      return `; EDE: ${error.code}${error.text === '' ? '' : `: (${error.text})`}`
    }
  }
  return `; OPT=${code}: ${Buffer.from(data).toString('hex')}`
}

function header(message: Message): string[] {
  const { edns } = message
  const counts = [
    `QUERY: ${message.questions.length}`,
    `ANSWER: ${message.answers.length}`,
    `AUTHORITY: ${message.authorities.length}`,
    `ADDITIONAL: ${message.additionals.length + (edns === undefined ? 0 : 1) + (message.tsig === undefined ? 0 : 1)}`,
  ]
  return [
    ';; Got answer:',
    `;; ->>HEADER<<- opcode: ${opcodeName(message.opcode)}, status: ${rcodeName(message.rcode)}, id: ${message.id}`,
    `;; flags: ${flagNames(message.flags)}; ${counts.join(', ')}`,
    '',
    ...(edns === undefined
      ? []
      : [
          ';; OPT PSEUDOSECTION:',
          `; EDNS: version: ${edns.version}, flags:${edns.isDo ? ' do' : ''}; udp: ${edns.size}`,
          ...edns.options.map(({ code, data }) => optionText(code, data)),
        ]),
  ]
}

const section = (title: string, records: readonly Resource[], hasTitle: boolean): string[] =>
  records.length === 0
    ? []
    : [...(hasTitle ? [`;; ${title} SECTION:`] : []), ...records.map(recordText), ...(hasTitle ? [''] : [])]

/** The data of the answers, one a line. */
const shortText = (message: Message): string[] => message.answers.map((record) => rdataToText(record.type, record.data))

export function replyText(reply: Reply, wanted: DigArguments, when: Date): string[] {
  const { message } = reply
  if (wanted.isShort) return shortText(message)
  const has = (name: Section) => wanted.sections.has(name)
  const hasTitle = has('comments')
  const questions = message.questions.map(
    (question) => `;${question.name}\t\t${className(question.class)}\t${typeName(question.type)}`,
  )
  return [
    ...(hasTitle ? header(message) : []),
    ...(has('question') ? [...(hasTitle ? [';; QUESTION SECTION:'] : []), ...questions, ''] : []),
    ...(has('answer') ? section('ANSWER', message.answers, hasTitle) : []),
    ...(has('authority') ? section('AUTHORITY', message.authorities, hasTitle) : []),
    ...(has('additional') ? section('ADDITIONAL', message.additionals, hasTitle) : []),
    ...(has('stats') ? statistics(reply, when) : []),
  ]
}

function statistics(reply: Reply, when: Date): string[] {
  const { address, port = 53 } = reply.server
  return [
    `;; Query time: ${Math.round(reply.durationMs)} msec`,
    `;; SERVER: ${address}#${port}(${address}) (${reply.transport.toUpperCase()})`,
    `;; WHEN: ${when.toUTCString()}`,
    `;; MSG SIZE  rcvd: ${reply.size}`,
  ]
}
