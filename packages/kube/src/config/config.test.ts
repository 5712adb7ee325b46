import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { connect as connectTcp, createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configFromText, loadConfig } from './config.ts'
import { ConfigError } from '../errors.ts'
import { loadInCluster } from './in-cluster.ts'
import { findProxy } from './proxy.ts'
import { createRest } from '../client/rest.ts'
import { fakeClock } from '../testing/clock.ts'
import { startPeer } from '../testing/peer.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const PEM = '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-config-'))
})
afterEach(async () => rm(folder, { recursive: true, force: true }))

type Fields = Record<string, unknown>

function kubeconfig(cluster: Fields = {}, user: Fields = {}, name = 'main'): string {
  return JSON.stringify({
    'current-context': name,
    clusters: [{ name, cluster: { server: 'https://api.test:6443', ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  })
}

describe('the user kubeconfig', () => {
  it('gives server, namespace, TLS and token', async () => {
    const text = kubeconfig(
      {
        server: 'https://api.test/prefix/',
        'certificate-authority-data': base64(PEM),
        'tls-server-name': 'x',
        'proxy-url': 'socks5://p:1',
      },
      { token: 't' },
    )
    const config = configFromText(text)
    expect(config).toMatchObject({
      name: 'main',
      server: 'https://api.test/prefix',
      namespace: 'default',
      proxyUrl: 'socks5://p:1',
    })
    expect(await config.credentials.headers()).toEqual({ authorization: 'Bearer t' })
    expect(config.credentials.tls()).toMatchObject({ ca: PEM, serverName: 'x' })
  })

  it('is merged from a list of files: the first definition wins, and paths are relative to their file', async () => {
    await mkdir(join(folder, 'a'))
    await mkdir(join(folder, 'b'))
    const one = join(folder, 'a', 'config')
    const two = join(folder, 'b', 'config')
    await writeFile(join(folder, 'b', 'token'), 'from-b\n')
    await writeFile(
      one,
      JSON.stringify({
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'first' } }],
        clusters: [{ name: 'c', cluster: { server: 'https://one.test' } }],
      }),
    )
    await writeFile(
      two,
      JSON.stringify({
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'other', user: 'other' } }],
        clusters: [{ name: 'c', cluster: { server: 'https://two.test' } }],
        users: [{ name: 'u', user: { tokenFile: 'token' } }],
      }),
    )
    const env = { KUBECONFIG: [join(folder, 'absent'), one, two].join(delimiter) }
    const config = await loadConfig({ env })
    expect([config.server, config.namespace]).toEqual(['https://one.test', 'first'])
    expect(await config.credentials.headers()).toEqual({ authorization: 'Bearer from-b' })
  })

  it('is read from the home directory, by path, or by context', async () => {
    await mkdir(join(folder, '.kube'))
    const path = join(folder, '.kube', 'config')
    await writeFile(path, kubeconfig({}, { token: 'home' }))
    expect((await loadConfig({ env: { HOME: folder } })).name).toBe('main')
    expect((await loadConfig({ path, env: {} })).name).toBe('main')
    await expect(loadConfig({ path, context: 'nope', env: {} })).rejects.toMatchObject({
      code: 'NO_CONTEXT',
      message: 'kubeconfig has no context "nope"; it has "main"',
    })
    await expect(loadConfig({ path: join(folder, 'absent'), env: {} })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(loadConfig({ env: { HOME: join(folder, 'nobody') } })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('reads token and certificate files again when they change', async () => {
    const clock = fakeClock()
    for (const [name, text] of Object.entries({ token: 'one', crt: 'cert-1', key: 'key-1' }))
      await writeFile(join(folder, name), text)
    const user = {
      tokenFile: join(folder, 'token'),
      'client-certificate': join(folder, 'crt'),
      'client-key': join(folder, 'key'),
    }
    const { credentials } = configFromText(kubeconfig({}, user), { clock })
    expect(await credentials.headers()).toEqual({ authorization: 'Bearer one' })
    await writeFile(join(folder, 'token'), 'two')
    await writeFile(join(folder, 'crt'), 'cert-2')
    await clock.advance(60_000)
    await credentials.headers()
    const version = credentials.tls().version
    const sent = async () => {
      await clock.advance(1)
      return (await credentials.headers())['authorization']
    }
    await expect.poll(sent, { interval: 1 }).toBe('Bearer two')
    expect([credentials.tls().version, credentials.tls().cert]).toEqual([version + 1, 'cert-2'])
  })

  it('supports basic auth and impersonation', async () => {
    const basic = configFromText(kubeconfig({}, { username: 'jo', password: 'pw' }))
    expect(await basic.credentials.headers()).toEqual({ authorization: `Basic ${base64('jo:pw')}` })
    const as = configFromText(
      kubeconfig({}, { token: 't', as: 'jo', 'as-groups': ['g'], 'as-uid': '1', 'as-user-extra': { scope: ['s'] } }),
    )
    expect(await as.credentials.headers()).toEqual({
      authorization: 'Bearer t',
      'impersonate-user': 'jo',
      'impersonate-group': ['g'],
      'impersonate-uid': '1',
      'impersonate-extra-scope': ['s'],
    })
  })

  it.each([
    ['is not YAML', 'a: [', 'NOT_YAML'],
    ['is a list', '[]', 'NOT_YAML'],
    ['has no context', '{}', 'NO_CONTEXT'],
    ['has contexts of a wrong type', '{"contexts": 7, "current-context": "x"}', 'WRONG_TYPE'],
    ['has a current-context of a wrong type', '{"current-context": {}}', 'WRONG_TYPE'],
    ['has an invalid server', kubeconfig({ server: 'tcp://x' }), 'BAD_SERVER'],
    ['has no server', kubeconfig({ server: '' }), 'NO_SERVER'],
    ['has an invalid CA', kubeconfig({ 'certificate-authority-data': '%%' }), 'BAD_DATA'],
    ['has a certificate without a key', kubeconfig({}, { 'client-certificate-data': base64(PEM) }), 'BAD_DATA'],
    ['uses an auth-provider', kubeconfig({}, { 'auth-provider': { name: 'gcp' } }), 'AUTH_PROVIDER'],
    ['has an exec of another version', kubeconfig({}, { exec: { command: 'x', apiVersion: 'v9' } }), 'EXEC'],
    ['has __proto__ for a context', '{"current-context": "__proto__", "contexts": []}', 'NO_CONTEXT'],
    ['has a boolean that is text', kubeconfig({ 'insecure-skip-tls-verify': 'true' }), 'WRONG_TYPE'],
  ])('is rejected with a code when it %s', (_what, text, code) => {
    let error: unknown
    try {
      configFromText(text)
    } catch (caught) {
      error = caught
    }
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({ code })
  })
})

describe('an exec plug-in', () => {
  async function plugin(script: string, more: Fields = {}): Promise<string> {
    const command = join(folder, 'plugin')
    await writeFile(command, `#!/bin/sh\n${script}\n`)
    await chmod(command, 0o755)
    return kubeconfig(
      {},
      { exec: { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never', ...more } },
    )
  }
  const credential = (status: Fields) =>
    JSON.stringify({ kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1', status })

  it('runs once for concurrent requests, gets KUBERNETES_EXEC_INFO, and runs again before its token expires', async () => {
    const clock = fakeClock(Date.parse('2030-01-01T00:00:00Z'))
    const status = credential({ token: 'TOKEN', expirationTimestamp: '2030-01-01T00:10:00Z' })
    const script = `echo run >> ${folder}/runs; echo "$KUBERNETES_EXEC_INFO" > ${folder}/info; echo "$EXTRA" > ${folder}/extra; printf '%s' '${status}'`
    const text = await plugin(script, { provideClusterInfo: true, env: [{ name: 'EXTRA', value: 'yes' }] })
    const { credentials } = configFromText(text, { clock })
    const runs = async () => (await readFile(join(folder, 'runs'), 'utf8')).split('\n').length - 1
    const all = await Promise.all(Array.from({ length: 4 }, async () => credentials.headers()))
    expect(all.every((headers) => headers['authorization'] === 'Bearer TOKEN')).toBe(true)
    expect(await runs()).toBe(1)
    expect(JSON.parse(await readFile(join(folder, 'info'), 'utf8'))).toMatchObject({
      kind: 'ExecCredential',
      spec: { interactive: false, cluster: { server: 'https://api.test:6443' } },
    })
    expect((await readFile(join(folder, 'extra'), 'utf8')).trim()).toBe('yes')
    await clock.advance(9 * 60_000)
    await credentials.headers()
    const later = async () => {
      await clock.advance(1)
      return runs()
    }
    await expect.poll(later, { interval: 1 }).toBe(2)
  })

  it('may return a client certificate', async () => {
    const text = await plugin(`printf '%s' '${credential({ clientCertificateData: 'CERT', clientKeyData: 'KEY' })}'`)
    const { credentials } = configFromText(text)
    await credentials.headers()
    expect(credentials.tls()).toMatchObject({ cert: 'CERT', key: 'KEY' })
  })

  it.each([
    ['fails', 'echo hunter2; exit 3', 'exit code 3'],
    ['prints no JSON', 'echo hunter2', 'did not print JSON'],
    ['prints something else', `echo '{"kind":"Pod","secret":"hunter2"}'`, 'did not print an ExecCredential'],
    [
      'returns nothing',
      `printf '%s' '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{}}'`,
      'neither a token',
    ],
    [
      'returns a wrong type',
      `printf '%s' '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":["hunter2"]}}'`,
      'not a string',
    ],
  ])('that %s is an error without its output', async (_what, script, message) => {
    const { credentials } = configFromText(await plugin(script))
    const error: unknown = await Promise.resolve(credentials.headers()).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toContain(message)
    expect(String(error)).not.toContain('hunter2')
  })

  it('that is not installed reports how to install it', async () => {
    const text = kubeconfig(
      {},
      {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: 'no-such-plugin',
          installHint: 'brew install it',
        },
      },
    )
    await expect(configFromText(text).credentials.headers()).rejects.toThrow('brew install it')
  })
})

describe('a service account', () => {
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  beforeEach(async () => {
    for (const [name, text] of Object.entries({ token: 'one\n', 'ca.crt': PEM, namespace: 'edge' }))
      await writeFile(join(folder, name), text)
  })

  it('is read from its files, again after a minute, and the last valid token is kept when that fails', async () => {
    const clock = fakeClock()
    const config = await loadInCluster({ env, folder, clock })
    expect([config.server, config.namespace]).toEqual(['https://[fd00::1]:443', 'edge'])
    expect(await config.credentials.headers()).toEqual(bearer('one'))
    await writeFile(join(folder, 'token'), 'two')
    await clock.advance(59_999)
    expect(await config.credentials.headers()).toEqual(bearer('one'))
    await clock.advance(1)
    await expect.poll(async () => config.credentials.headers()).toEqual(bearer('two'))
    await rm(join(folder, 'token'))
    await clock.advance(60_000)
    await config.credentials.headers()
    await clock.advance(20_000)
    expect(await config.credentials.headers()).toEqual(bearer('two'))
  })

  it('is read again at once after the API server rejected its token', async () => {
    const config = await loadInCluster({ env, folder, clock: fakeClock() })
    await writeFile(join(folder, 'token'), 'two')
    config.credentials.invalidate()
    expect(await config.credentials.headers()).toEqual(bearer('two'))
  })

  it('is reported clearly when missing', async () => {
    await expect(loadInCluster({ env: {} })).rejects.toMatchObject({ code: 'NOT_IN_CLUSTER' })
    const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
    await expect(loadInCluster({ env, folder: join(folder, 'absent') })).rejects.toMatchObject({
      code: 'NOT_IN_CLUSTER',
    })
  })
})

describe('proxies', () => {
  it.each([
    ['https://api.test', { HTTPS_PROXY: 'http://p:3128' }, 'http://p:3128'],
    ['https://api.test', { https_proxy: 'p:3128' }, 'http://p:3128'],
    ['http://api.test', { HTTPS_PROXY: 'http://p:3128' }, undefined],
    ['https://127.0.0.1:6443', { HTTPS_PROXY: 'http://p' }, undefined],
    ['https://a.b.test', { HTTPS_PROXY: 'http://p', NO_PROXY: 'x.test, b.test' }, undefined],
    ['https://ab.test', { HTTPS_PROXY: 'http://p', NO_PROXY: 'b.test' }, 'http://p'],
    ['https://b.test', { HTTPS_PROXY: 'http://p', NO_PROXY: '.b.test' }, 'http://p'],
    ['https://10.1.2.3', { HTTPS_PROXY: 'http://p', NO_PROXY: '10.0.0.0/8' }, undefined],
    ['https://api.test:6443', { HTTPS_PROXY: 'http://p', NO_PROXY: 'api.test:443' }, 'http://p'],
    ['https://api.test', { HTTPS_PROXY: 'http://p', NO_PROXY: '*' }, undefined],
  ])('of the environment for %s with %o: %s', (server, env, expected) => {
    expect(findProxy(server, env)).toBe(expected)
  })

  const proxies: Server[] = []
  afterEach(async () => {
    for (const proxy of proxies.splice(0)) await new Promise((resolve) => proxy.close(resolve))
  })

  /** A proxy for a single tunnel that records its requests. */
  async function startProxy(kind: 'connect' | 'socks' | 'refusing', received: string[]): Promise<number> {
    const proxy = createServer((near) => {
      near.on('error', () => undefined)
      const open = (port: number, greeting: Buffer) => {
        const far = connectTcp(port, '127.0.0.1', () => {
          near.write(greeting)
          near.pipe(far).pipe(near)
        })
        far.on('error', () => near.destroy())
      }
      if (kind !== 'socks') {
        near.once('data', (head) => {
          received.push(head.toString('latin1'))
          const port = Number(/:(\d+) HTTP/.exec(head.toString('latin1'))?.[1])
          if (kind === 'refusing') near.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
          else open(port, Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))
        })
        return
      }
      near.once('data', () => {
        near.write(Buffer.from([5, 2]))
        near.once('data', (login) => {
          received.push(login.toString('latin1', 2, 4))
          near.write(Buffer.from([1, 0]))
          near.once('data', (request) => {
            const length = request[4] ?? 0
            received.push(request.toString('latin1', 5, 5 + length))
            open(request.readUInt16BE(5 + length), Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
          })
        })
      })
    })
    proxies.push(proxy)
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    return (proxy.address() as AddressInfo).port
  }

  it.each(['h2', 'h1'] as const)('carry %s through CONNECT and through SOCKS5', async (protocol) => {
    const received: string[] = []
    await using peer = await startPeer({ protocol, script: (exchange) => exchange.reply(200, 'through') })
    const ports = { http: await startProxy('connect', received), socks5: await startProxy('socks', received) }
    for (const [scheme, port] of Object.entries(ports)) {
      const text = kubeconfig({
        server: peer.url,
        'certificate-authority-data': base64(peer.caPem),
        'proxy-url': `${scheme}://jo:pw@127.0.0.1:${port}`,
      })
      const rest = createRest(configFromText(text))
      expect((await rest.call({ method: 'GET', path: '/' })).body.toString()).toBe('through')
      await rest.close()
    }
    expect(received[0]).toContain(`Proxy-Authorization: Basic ${base64('jo:pw')}`)
    expect(received.slice(-2)).toEqual(['jo', '127.0.0.1'])
  })

  it('that reject the tunnel are named in the error', async () => {
    const port = await startProxy('refusing', [])
    const rest = createRest(
      configFromText(kubeconfig({ 'proxy-url': `http://127.0.0.1:${port}` }, { token: 'hunter2' })),
    )
    const error: unknown = await rest.call({ method: 'GET', path: '/' }).catch((caught: unknown) => caught)
    expect(String(error)).toContain('answered CONNECT with 407')
    await rest.close()
  })
})
