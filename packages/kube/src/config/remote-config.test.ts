import childProcess from 'node:child_process'
import fs from 'node:fs'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { addressGuard, isAddressRange } from './address-guard.ts'
import { createAuthority, type Authority, type CertificatePair } from '../certificates.ts'
import { ConfigError } from '../errors.ts'
import { parseRemoteConfig } from './remote-config.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const dayMs = 86_400_000

let authority: Authority
let expired: Authority
let client: CertificatePair
let other: CertificatePair

beforeAll(async () => {
  authority = await createAuthority({ commonName: 'member' })
  expired = await createAuthority({ commonName: 'old', now: () => Date.now() - 10 * dayMs, validForMs: dayMs })
  client = await authority.issue({ commonName: 'seamark', usages: 'client' })
  other = await authority.issue({ commonName: 'other', usages: 'client' })
})

type Mutable = Record<string, unknown>

/** A valid kubeconfig; each hostile one is a modification of it. */
function good(cluster: Mutable = {}, user: Mutable = {}, top: Mutable = {}, context: Mutable = {}): Mutable {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    preferences: {},
    clusters: [
      {
        name: 'c',
        cluster: {
          server: 'https://10.0.0.1:6443',
          'certificate-authority-data': base64(authority.certPem),
          ...cluster,
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'secret-canary-token', ...user } }],
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', ...context } }],
    ...top,
  }
}

const withServer = (server: unknown) => () => good({ server })
const withUser = (user: Mutable) => () => good({}, user)
const exec = (more: Mutable = {}) => ({
  apiVersion: 'client.authentication.k8s.io/v1',
  command: '/bin/sh',
  args: ['-c', 'touch /tmp/pwned'],
  ...more,
})

/** name → document (an object is serialised as YAML). */
const HOSTILE: Record<string, () => Mutable | string> = {
  // Programs
  exec: withUser({ exec: exec() }),
  'exec, interactive': withUser({ exec: exec({ interactiveMode: 'Always' }) }),
  'exec, never interactive': withUser({ exec: exec({ interactiveMode: 'Never' }) }),
  'exec with environment': withUser({ exec: exec({ env: [{ name: 'LD_PRELOAD', value: '/tmp/x.so' }] }) }),
  'exec with cluster info': withUser({ exec: exec({ provideClusterInfo: true }) }),
  'exec that is empty': withUser({ exec: {} }),
  'exec that is null': withUser({ exec: null }),
  'exec that is text': withUser({ exec: 'sh' }),
  'exec that is a list': withUser({ exec: ['sh'] }),
  'exec of v1alpha1': withUser({ exec: exec({ apiVersion: 'client.authentication.k8s.io/v1alpha1' }) }),
  'exec of a bare command': withUser({ exec: exec({ command: 'aws' }) }),
  'exec beside a token': withUser({ token: 't', exec: exec() }),
  'exec of an unused user': () =>
    good(
      {},
      {},
      {
        users: [
          { name: 'u', user: { token: 't' } },
          { name: 'v', user: { exec: exec() } },
        ],
      },
    ),
  'exec in the cluster': () => good({ exec: exec() }),
  'exec in the context': () => good({}, {}, {}, { exec: exec() }),
  'exec on top': () => good({}, {}, { exec: exec() }),
  'auth-provider gcp': withUser({
    'auth-provider': { name: 'gcp', config: { 'cmd-path': '/bin/sh', 'cmd-args': '-c id' } },
  }),
  'auth-provider azure': withUser({ 'auth-provider': { name: 'azure', config: { 'access-token': 'x' } } }),
  'auth-provider oidc': withUser({
    'auth-provider': { name: 'oidc', config: { 'idp-issuer-url': 'https://evil.test' } },
  }),
  'auth-provider with JSONPath': withUser({ 'auth-provider': { name: 'gcp', config: { 'token-key': '{$..[?(1)]}' } } }),
  'auth-provider that is null': withUser({ 'auth-provider': null }),
  // Files
  tokenFile: withUser({ tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token' }),
  'tokenFile instead of a token': withUser({ token: undefined, tokenFile: '/etc/shadow' }),
  'tokenFile that is relative': withUser({ tokenFile: '../../etc/passwd' }),
  'token-file': withUser({ 'token-file': '/etc/passwd' }),
  'certificate-authority': () => good({ 'certificate-authority': '/etc/ssl/certs/ca.pem' }),
  'certificate-authority of the service account': () =>
    good({ 'certificate-authority': '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' }),
  'client-certificate': withUser({
    'client-certificate': '/etc/kubernetes/pki/admin.crt',
    'client-key': '/etc/kubernetes/pki/admin.key',
  }),
  'client-key out of /proc': withUser({ 'client-key': '/proc/self/environ' }),
  'client-key as a URL': withUser({ 'client-key': 'file:///etc/shadow' }),
  // Destinations
  'proxy-url http': () => good({ 'proxy-url': 'http://evil.test:3128' }),
  'proxy-url https': () => good({ 'proxy-url': 'https://evil.test' }),
  'proxy-url socks5': () => good({ 'proxy-url': 'socks5://evil.test:1080' }),
  'proxy-url that is empty': () => good({ 'proxy-url': '' }),
  'insecure-skip-tls-verify': () => good({ 'insecure-skip-tls-verify': true }),
  'insecure-skip-tls-verify false': () => good({ 'insecure-skip-tls-verify': false }),
  'insecure-skip-tls-verify as text': () => good({ 'insecure-skip-tls-verify': 'yes' }),
  'tls-server-name': () => good({ 'tls-server-name': 'kubernetes.default' }),
  'disable-compression': () => good({ 'disable-compression': true }),
  extensions: () => good({ extensions: [{ name: 'x', extension: {} }] }),
  impersonation: withUser({ as: 'system:admin' }),
  'impersonated groups': withUser({ 'as-groups': ['system:masters'] }),
  'basic auth': withUser({ username: 'admin', password: 'secret-canary' }),
  'plain http': withServer('http://10.0.0.1:6443'),
  ftp: withServer('ftp://10.0.0.1'),
  file: withServer('file:///etc/passwd'),
  'unix socket': withServer('unix:///var/run/docker.sock'),
  javascript: withServer('javascript:alert(1)'),
  'no scheme': withServer('10.0.0.1:6443'),
  'no host': withServer('https://'),
  'server that is not a URL': withServer('not a url'),
  'server that is a number': withServer(6443),
  'server that is a list': withServer(['https://10.0.0.1']),
  'no server': withServer(undefined),
  'server with path': withServer('https://10.0.0.1:6443/k8s/clusters/c-1'),
  'server with a path with ..': withServer('https://10.0.0.1:6443/../x'),
  'server with query': withServer('https://10.0.0.1:6443/?x=1'),
  'server with fragment': withServer('https://10.0.0.1:6443/#x'),
  'server with user': withServer('https://admin@10.0.0.1:6443'),
  'server with user and password': withServer('https://admin:secret-canary@10.0.0.1:6443'),
  'server that hides its host behind @': withServer('https://10.0.0.1:6443@169.254.169.254'),
  'server with backslash': withServer('https://10.0.0.1\\@169.254.169.254'),
  'server with newline': withServer('https://10.0.0.1:6443\n'),
  'server with tab inside': withServer('https://10.0.\t0.1:6443'),
  'server with a port too high': withServer('https://10.0.0.1:99999'),
  // Addresses
  loopback: withServer('https://127.0.0.1:6443'),
  'loopback, short': withServer('https://127.1:6443'),
  'loopback, octal': withServer('https://0177.0.0.1:6443'),
  'loopback, decimal': withServer('https://2130706433'),
  'loopback, hexadecimal': withServer('https://0x7f.1'),
  'loopback, v6': withServer('https://[::1]:6443'),
  'loopback, mapped': withServer('https://[::ffff:127.0.0.1]'),
  'loopback, mapped in hex': withServer('https://[::ffff:7f00:1]'),
  'loopback, compatible': withServer('https://[::127.0.0.1]'),
  'loopback, NAT64': withServer('https://[64:ff9b::7f00:1]'),
  'loopback, 6to4': withServer('https://[2002:7f00:1::]'),
  localhost: withServer('https://localhost:6443'),
  'localhost, dotted': withServer('https://localhost.:6443'),
  'localhost, upper-case': withServer('https://LOCALHOST:6443'),
  'localhost, sub-domain': withServer('https://api.localhost:6443'),
  'localhost, full-width': withServer('https://ｌocalhost:6443'),
  unspecified: withServer('https://0.0.0.0:6443'),
  'unspecified, short': withServer('https://0:6443'),
  'unspecified, v6': withServer('https://[::]:6443'),
  'cloud metadata': withServer('https://169.254.169.254'),
  'cloud metadata, decimal': withServer('https://2852039166'),
  'cloud metadata, mapped': withServer('https://[::ffff:169.254.169.254]'),
  'cloud metadata, NAT64': withServer('https://[64:ff9b::a9fe:a9fe]'),
  'cloud metadata, v6': withServer('https://[fd00:ec2::254]'),
  'cloud metadata, Alibaba': withServer('https://100.100.100.200'),
  'link-local': withServer('https://169.254.1.1'),
  'link-local, v6': withServer('https://[fe80::1]'),
  'link-local with zone': withServer('https://[fe80::1%25eth0]'),
  multicast: withServer('https://224.0.0.1'),
  'multicast, v6': withServer('https://[ff02::1]'),
  broadcast: withServer('https://255.255.255.255'),
  // Invalid documents
  empty: () => '',
  'only a comment': () => '# nothing',
  'not YAML': () => 'clusters: [unclosed',
  tabs: () => 'clusters:\n\t- name: x',
  text: () => 'just text with secret-canary-token',
  'a number': () => '42',
  'a list': () => '- a\n- b',
  null: () => 'null',
  binary: () => '\u0000\u0001\u0002\u001b[31m',
  'two documents': () => `${stringify(good())}---\n${stringify(good())}`,
  'duplicate keys': () => `${stringify(good())}\ncurrent-context: other\n`,
  'duplicate token': () => stringify(good()).replace('token: secret-canary-token', 'token: a\n      token: b'),
  'two clusters of one name': () =>
    good(
      {},
      {},
      {
        clusters: [
          ...(good()['clusters'] as unknown[]),
          ...(good({ server: 'https://10.9.9.9' })['clusters'] as unknown[]),
        ],
      },
    ),
  'unknown key on top': () => good({}, {}, { plugins: [] }),
  preferences: () => good({}, {}, { preferences: { colors: true } }),
  'clusters that are a mapping': () => good({}, {}, { clusters: { c: {} } }),
  'users that are text': () => good({}, {}, { users: 'u' }),
  'contexts with null': () => good({}, {}, { contexts: [null] }),
  'context without name': () => good({}, {}, { contexts: [{ context: { cluster: 'c', user: 'u' } }] }),
  'name that is a number': () => good({}, {}, { clusters: [{ name: 7, cluster: {} }] }),
  'no current-context': () => good({}, {}, { 'current-context': undefined }),
  'current-context that is missing': () => good({}, {}, { 'current-context': 'other' }),
  'current-context with a homoglyph': () => good({}, {}, { 'current-context': 'mаin' }),
  'current-context that is a list': () => good({}, {}, { 'current-context': ['main'] }),
  'current-context __proto__': () => good({}, {}, { 'current-context': '__proto__' }),
  'current-context constructor': () => good({}, {}, { 'current-context': 'constructor' }),
  'context __proto__ that pollutes': () => stringify(good()).replace('name: main', 'name: __proto__'),
  '__proto__ on top': () => `${stringify(good())}\n__proto__: {polluted: true}\n`,
  '__proto__ in the user': () =>
    stringify(good()).replace('token: secret-canary-token', 'token: t\n      __proto__: {exec: {command: sh}}'),
  'constructor in the cluster': () => good({ constructor: { prototype: { polluted: true } } }),
  'merge key that brings exec': () =>
    `x: &x {exec: {command: sh}}\n${stringify(good()).replace('token: secret-canary-token', 'token: t\n      <<: *x')}`,
  'context to a missing cluster': () => good({}, {}, {}, { cluster: 'nope' }),
  'context to a missing user': () => good({}, {}, {}, { user: 'nope' }),
  'context with a cluster that is a mapping': () => good({}, {}, {}, { cluster: { server: 'x' } }),
  // Credentials
  'no credentials': withUser({ token: undefined }),
  'token that is empty': withUser({ token: '' }),
  'token that is a number': withUser({ token: 12_345 }),
  'token with newline': withUser({ token: 'abc\r\nX-Remote-User: admin' }),
  'token with blanks': withUser({ token: 'abc def' }),
  'token that is not ASCII': withUser({ token: 'tökén' }),
  'token too long': withUser({ token: 'x'.repeat(20_000) }),
  'CA that is not base64': () => good({ 'certificate-authority-data': '!!!' }),
  'CA of blanks without end': () => good({ 'certificate-authority-data': `${' '.repeat(30_000)}!` }),
  'CA that is junk': () => good({ 'certificate-authority-data': base64('junk') }),
  'CA that is a key': () => good({ 'certificate-authority-data': base64(authority.keyPem) }),
  'CA with a broken certificate': () =>
    good({ 'certificate-authority-data': base64('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----') }),
  'CA that has ended': () => good({ 'certificate-authority-data': base64(expired.certPem) }),
  'certificate without key': withUser({ 'client-certificate-data': base64('-----BEGIN CERTIFICATE-----') }),
  'key without certificate': () => good({}, { 'client-key-data': base64(client.keyPem) }),
  'key of another certificate': () =>
    good({}, { 'client-certificate-data': base64(client.certPem), 'client-key-data': base64(other.keyPem) }),
  'key that is junk': () =>
    good(
      {},
      { 'client-certificate-data': base64(client.certPem), 'client-key-data': base64('-----BEGIN PRIVATE KEY-----') },
    ),
  // Size
  'five megabytes': () => `# ${'x'.repeat(5 * 2 ** 20)}\n${stringify(good())}`,
  'ten thousand contexts': () =>
    good({}, {}, { contexts: Array.from({ length: 10_000 }, (_, index) => ({ name: `c${index}`, context: {} })) }),
  'a thousand small entries': () => `clusters: [${'{name: a},'.repeat(1000)}]`,
  'alias bomb': () =>
    `a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d]\n${stringify(good())}`,
  'alias to itself': () => `a: &a [*a]\n${stringify(good())}`,
  'merge bomb': () =>
    `${Array.from({ length: 500 }, (_, index) => `k${index}: &k${index} {<<: [${index > 0 ? `*k${index - 1}` : ''}]}`).join('\n')}\n${stringify(good())}`,
  'deep brackets': () => '['.repeat(60_000),
  'deep braces': () => '{a: '.repeat(15_000),
  'deep dashes': () => '- '.repeat(30_000),
  'deep indentation': () => Array.from({ length: 300 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
}

const textOf = (document: Mutable | string) => (typeof document === 'string' ? document : stringify(document))

describe('a kubeconfig out of a Secret', () => {
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })

  it('is accepted with server, CA data and token or client certificate', async () => {
    const byToken = parseRemoteConfig(textOf(good({}, {}, {}, { namespace: 'edge' })))
    expect([byToken.name, byToken.server, byToken.namespace]).toEqual(['main', 'https://10.0.0.1:6443', 'edge'])
    expect(await byToken.credentials.headers()).toEqual({ authorization: 'Bearer secret-canary-token' })
    expect(byToken.credentials.tls().ca?.trim()).toBe(authority.certPem.trim())
    const pair = {
      token: undefined,
      'client-certificate-data': base64(client.certPem),
      'client-key-data': base64(client.keyPem),
    }
    const byCertificate = parseRemoteConfig(JSON.stringify(good({ server: 'https://api.member.test' }, pair)))
    expect(byCertificate.credentials.tls()).toMatchObject({ key: client.keyPem })
    expect(await byCertificate.credentials.headers()).toEqual({})
  })

  it('may use a loopback address only when that is allowed', () => {
    const text = textOf(good({ server: 'https://127.0.0.1:6443' }))
    expect(() => parseRemoteConfig(text)).toThrow(ConfigError)
    for (const server of ['https://127.0.0.1:6443', 'https://localhost:6443'])
      expect(() => parseRemoteConfig(textOf(good({ server })))).toThrow('allowLoopback lets it be used')
    expect(parseRemoteConfig(text, { allowLoopback: true }).server).toBe('https://127.0.0.1:6443')
    expect(() => parseRemoteConfig(textOf(good()), { deny: ['10.0.0.0/8'] })).toThrow('denied by configuration')
  })

  it('has a guard that checks the addresses its name resolves to', () => {
    const { guard } = parseRemoteConfig(textOf(good({ server: 'https://metadata.test' })))
    expect([guard?.('169.254.169.254'), guard?.('127.0.0.1'), guard?.('::1')].every((why) => why !== undefined)).toBe(
      true,
    )
    expect([guard?.('10.1.2.3'), guard?.('203.0.113.7'), guard?.('2001:db8::1')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  it('is tested with more than a hundred hostile variants', () => {
    expect(Object.keys(HOSTILE).length).toBeGreaterThanOrEqual(100)
  })

  it.each(Object.entries(HOSTILE))('is rejected: %s', (_name, make) => {
    const spawned = (['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'] as const).map(
      (name) => vi.spyOn(childProcess, name),
    )
    const opened = (['readFileSync', 'openSync', 'open', 'readFile'] as const).map((name) => vi.spyOn(fs, name))
    syncBuiltinESMExports()
    let refusal: unknown
    try {
      parseRemoteConfig(textOf(make()))
    } catch (error) {
      refusal = error
    }
    expect(refusal).toBeInstanceOf(ConfigError)
    expect(String(refusal)).not.toContain('secret-canary')
    expect(String(refusal).length).toBeLessThan(400)
    for (const spy of [...spawned, ...opened]) expect(spy).not.toHaveBeenCalled()
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('is loaded without importing modules for processes or files', () => {
    const seen = new Set<string>()
    const builtins = new Set<string>()
    const visit = (file: string) => {
      if (seen.has(file)) return
      seen.add(file)
      for (const [, isType, from = ''] of readFileSync(file, 'utf8').matchAll(
        /^(?:import|export) (type )?[^;]*?from '([^']+)'/gms,
      )) {
        if (isType !== undefined) continue
        if (from.startsWith('.')) visit(join(dirname(file), from))
        else builtins.add(from)
      }
    }
    visit(join(import.meta.dirname, 'remote-config.ts'))
    expect(seen.size).toBeGreaterThan(4)
    expect([...builtins].toSorted()).toEqual(['node:crypto', 'node:net', 'yaml'])
  })
})

describe('the address guard', () => {
  it.each([
    ['168.63.129.16', 'cloud metadata'],
    ['fec0::1', 'site-local'],
    ['feff::1', 'site-local'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'Teredo'],
    ['::ffff:0:169.254.169.254', 'link-local'],
    ['::ffff:0:127.0.0.1', 'loopback'],
    ['2001:db8::5efe:169.254.169.254', 'link-local'],
    ['2001:db8::200:5efe:127.0.0.1', 'loopback'],
    ['fd00::5efe:a83f:8110', 'cloud metadata'],
    ['64:ff9b::169.254.169.254', 'link-local'],
    ['64:ff9b:1::169.254.169.254', 'link-local'],
    ['64:ff9b:1:a9fe:a9:fe00::', 'refused'],
    ['64:ff9b:1:a9:fe:a910::a00', 'refused'],
    ['64:ff9b:1:aa:a9:fea9:a00:0', 'refused'],
    ['2002:a9fe:a9fe::1', 'link-local'],
    ['::127.0.0.1', 'loopback'],
  ])('rejects %s (%s)', (address, why) => {
    expect(addressGuard()(address)).toContain(why)
  })

  it.each(['64:ff9b::8.8.8.8', '2001:db8::5efe:8.8.8.8', '2001:db8::1', '2001:1::1', '::ffff:0:8.8.8.8'])(
    'allows %s',
    (address) => {
      expect(addressGuard()(address)).toBeUndefined()
    },
  )

  it('recognises address ranges', () => {
    for (const range of ['10.0.0.0/8', '192.0.2.1', '2001:db8::/32', '::1']) expect(isAddressRange(range)).toBe(true)
    for (const range of ['', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', 'host/8', '::/129', 'fe80::1%1/64', '10/8'])
      expect(isAddressRange(range), range).toBe(false)
  })

  it('allows public and private addresses and rejects further configured ranges', () => {
    const guard = addressGuard({ deny: ['10.96.0.0/12', '2001:db8::/32'] })
    expect([guard('10.0.0.1'), guard('192.168.1.1'), guard('8.8.8.8'), guard('2606:4700::1')]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(guard('10.96.0.1')).toContain('10.96.0.0/12')
    expect(guard('2001:db8::5')).toContain('2001:db8::/32')
    expect(guard('not an address')).toContain('not an IP address')
  })
})
