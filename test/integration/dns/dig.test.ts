/**
 * `seamark dig` against dig itself: the same words to the same server must print the same lines, but for what differs from
 * call to call (id, cookie, time) and the name of the program. Words come in generated orders: SEAMARK_SEED repeats a run.
 */
import { execFile } from 'node:child_process'
import { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { buildDig as build } from '@seamark/cli/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDnsServer, type DnsServer, isZoneFileError, loadZoneFile } from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'
import { SeededRandom } from './random.ts'

const run = promisify(execFile)
const SEED = Number(process.env['SEAMARK_SEED'])
const ORDERS = 60

const TEXT = `$ORIGIN example.test.
$TTL 60
@ SOA ns1 host 7 3600 600 86400 30
@ NS ns1
ns1 A 127.0.0.1
www 3600 A 192.0.2.1
v6 AAAA 2001:db8::1
mx MX 10 www
mx-of-a-name-longer-than-the-column MX 10 www
txt TXT "a b" "c\\"d;e" "\\000\\255"
https HTTPS 1 . alpn="h2,h3" port=8443 ipv4hint=192.0.2.1
tlsa TLSA 3 1 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
unknown TYPE65280 \\# 40 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0011223344556677
alias CNAME www
out CNAME www.other.test.
sub NS ns.sub
ns.sub A 192.0.2.4
big TXT "${'x'.repeat(250)}" "${'y'.repeat(250)}" "${'z'.repeat(250)}"
`
const REVERSE = `$ORIGIN 2.0.192.in-addr.arpa.
$TTL 60
@ SOA ns1.example.test. host.example.test. 7 3600 600 86400 30
@ NS ns1.example.test.
1 PTR www.example.test.
`

function load(text: string) {
  const zone = loadZoneFile(text)
  if (isZoneFileError(zone)) throw new Error(`${zone.line}: ${zone.reason}`)
  return zone
}

class Text extends Writable {
  text = ''
  override _write(chunk: unknown, _encoding: string, done: () => void): void {
    this.text += String(chunk)
    done()
  }
}

async function ours(words: readonly string[]): Promise<string> {
  const stdout = new Text()
  const io = { stdout, stderr: new Text(), env: process.env, signal: new AbortController().signal, exit: () => {} }
  await build(io).parseAsync(words, { from: 'user' })
  return stdout.text
}

const theirs = async (words: readonly string[]): Promise<string> => (await run(findProgram('dig')!, [...words])).stdout

/** Without what differs from call to call and who printed it; dig counts servers only when @HOST comes before the name. */
const normalize = (text: string): string =>
  text
    .replace(/^; <<>> .*? <<>>/m, '; <<>> PROGRAM <<>>')
    .replace('; (1 server found)\n', '')
    .replace(/, id: \d+/, ', id: ID')
    .replace(/COOKIE: [0-9a-f]{48} /, 'COOKIE: COOKIE ')
    .replace(/Query time: \d+ msec/, 'Query time: N msec')
    .replace(/WHEN: \w{3} \w{3} \d\d \d\d:\d\d:\d\d (\S+) \d{4}$/m, 'WHEN: $1')

describe.skipIf(!needs('dig'))(`seamark dig and dig (seed ${SEED})`, () => {
  let server: DnsServer
  let at: string[]

  beforeAll(async () => {
    server = await createDnsServer({ zones: [load(TEXT), load(REVERSE)], listen: [{ address: '127.0.0.1', port: 0 }] })
    at = ['@127.0.0.1', '-p', String(server.addresses[0]!.port)]
  })
  afterAll(async () => server.close())

  it.each([
    'www.example.test',
    'WWW.Example.Test. A',
    'www.example.test AAAA',
    'nope.example.test +tcp',
    'mx-of-a-name-longer-than-the-column.example.test MX',
    'mx.example.test MX +norec +noedns',
    'txt.example.test TXT +noall +answer',
    'https.example.test HTTPS +nocomments',
    'tlsa.example.test TLSA +nostats',
    'tlsa.example.test TLSA +nosplit',
    'tlsa.example.test TLSA +split=16 +short',
    'unknown.example.test TYPE65280',
    'unknown.example.test TYPE65280 +short',
    'v6.example.test AAAA +nottlid',
    'v6.example.test AAAA +noclass',
    'v6.example.test AAAA +noclass +nottlid',
    'x.sub.example.test +nocookie',
    'x.sub.example.test +noauthority',
    'x.sub.example.test +noadditional +noquestion',
    'alias.example.test +short',
    'out.example.test +nocmd',
    'big.example.test TXT',
    'big.example.test TXT +ignore +bufsize=512',
    'big.example.test TXT +noedns',
    'big.example.test TXT +noedns +nocomments',
    'big.example.test TXT +noedns +nocmd',
    'big.example.test TXT +noedns +short',
    'example.test SOA +dnssec +nsid +subnet=192.0.2.0/24',
    'example.test CH TXT',
    'other.test',
    '-x 192.0.2.1',
    '-x 192.0.2.1 +short',
    '-x 192.0.2.1 TXT',
    '-t MX mx.example.test',
    '-t mx -q mx.example.test',
    '-tTXT -c IN txt.example.test',
    'MX mx.example.test',
    'IN mx.example.test MX',
    'mx',
    '+noall +question www.example.test',
    '+noall +stats www.example.test',
    '+noall +comments +answer www.example.test',
  ])('print the same for %s', async (line) => {
    const words = [...at, ...line.split(' ')]
    expect(normalize(await ours(words))).toBe(normalize(await theirs(words)))
  })

  it('print the same whatever the order of words', async () => {
    const random = new SeededRandom(SEED)
    const names = ['www', 'mx', 'txt', 'nope', 'x.sub', 'alias', 'tlsa', 'big'].map((label) => `${label}.example.test`)
    const types = ['A', 'mx', 'TXT', 'tlsa', 'ANY', 'TYPE1']
    const flags = ['+short', '+tcp', '+norec', '+noedns', '+nocmd', '+nocomments', '+noquestion', '+nostats', '+dnssec']
    for (let i = 0; i < ORDERS; i++) {
      const groups = [['@127.0.0.1'], ['-p', at[2]!], [random.pick(names)]]
      // After -t or -c dig takes a bare word for a second name.
      if (random.below(3) > 0) groups.push([random.pick(types)])
      else groups.push(['-t', random.pick(types)], ['-c', 'IN'])
      for (let n = random.below(4); n > 0; n--) groups.push([random.pick(flags)])
      const words: string[] = []
      while (groups.length > 0) words.push(...groups.splice(random.below(groups.length), 1)[0]!)
      expect(normalize(await ours(words)), words.join(' ')).toBe(normalize(await theirs(words)))
    }
  })
})
