/**
 * Credentials stay where they are: every provider that has one is run by the whole manager through success, outage,
 * silence and refusal, and nothing readable afterwards contains it: log, Events, objects with their status,
 * kept plans, plan files, errors.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { ConfigMap, createLogger, Event, Namespace } from '@seamark/kube'
import { OWNER, record, want } from '@seamark/operator/testing'
import {
  createEngine,
  createKillSwitch,
  createProvider,
  DNSEndpoint,
  memoryGuardStore,
  type Plan,
  printPlanJson,
  printPlanMarkdown,
  printPlanText,
  ProviderConfig,
  RecordsConfig,
  runApp,
} from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FaultSubject, faultSubjects, ZONE } from './fault-subjects.ts'
import { createNamespace, eventually, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'

const signal = new AbortController().signal

/** A secret in all the forms in which it could come to light. */
const formsOf = (secret: string): string[] => [
  secret,
  Buffer.from(secret).toString('base64'),
  Buffer.from(secret, 'base64').toString('latin1'),
  Buffer.from(secret).toString('hex'),
]

const leaks = (text: string, secrets: readonly string[]): boolean =>
  secrets.flatMap(formsOf).some((form) => form.length >= 8 && text.includes(form))

function expectClean(text: string, secrets: readonly string[]): void {
  // The text is not shown: it may hold what must not be shown.
  expect(leaks(text, secrets), 'a credential came to light').toBe(false)
}

/** An error with its causes and hidden properties, as the most talkative logger would print it. */
const everything = (value: unknown) => inspect(value, { depth: Infinity, showHidden: true, maxStringLength: Infinity })

it('a leak would be seen, in whatever form', () => {
  const secret = 'canary-of-this-test'
  for (const form of formsOf(secret)) expect(form.length < 8 || leaks(`before ${form} after`, [secret])).toBe(true)
  expect(leaks(everything(new Error('failed', { cause: { headers: { 'x-api-key': secret } } })), [secret])).toBe(true)
  expect(leaks('nothing of the sort', [secret])).toBe(false)
})

it('an API that repeats its key in an error does not bring it to light', async () => {
  const secret = 'canary-api-key-that-is-repeated'
  const api = createServer((request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: `the key ${request.headers['x-api-key'] as string} is not valid` }))
  })
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = api.address() as AddressInfo
    const config = { name: 'own', type: 'powerdns', url: `http://127.0.0.1:${port}`, apiKeyFrom: { env: 'KEY' } }
    const provider = await createProvider(ProviderConfig.parse(config), { env: { KEY: secret } })
    const [result] = await Promise.allSettled([provider.zones(signal)])
    expect(result.status).toBe('rejected')
    expectClean(everything(result), [secret])
    await provider.close?.()
  } finally {
    await new Promise((resolve) => api.close(resolve))
  }
})

for (const kind of faultSubjects.filter(({ title }) =>
  ['BIND', 'Knot', 'PowerDNS', 'Route 53, a strict fake'].includes(title),
)) {
  describe.skipIf(!kind.isAvailable)(`the credentials of ${kind.title}`, () => {
    let subject: FaultSubject
    let started: FaultSubject | undefined
    let environment: TestEnvironment
    beforeAll(async () => {
      const [embedded] = environmentKinds
      if (embedded === undefined) throw new Error('no embedded environment')
      environment = await embedded.start()
      subject = await kind.start()
      started = subject
      await createNamespace(environment.client, 'web')
      await createNamespace(environment.client, 'seamark')
      if ((await environment.client.find(Namespace, 'kube-system')) === undefined)
        await createNamespace(environment.client, 'kube-system')
    })
    afterAll(async () => {
      await started?.close()
      await environment[Symbol.asyncDispose]()
    })

    const published = async (name: string) => {
      const found = await subject.direct.read(subject.zone, new Set([`${name}.${ZONE}`]), signal)
      return found.find(({ type }) => type === 'A')
    }
    const create = async (name: string) =>
      environment.client.create(DNSEndpoint, {
        metadata: { name, namespace: 'web' },
        spec: { endpoints: [{ dnsName: `${name}.a.test`, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }] },
      })

    it('are in no log, Event, status or kept plan of a manager, whatever happens', { timeout: 90_000 }, async () => {
      let log = ''
      const { cluster } = environment.connect('seamark')
      const stop = new AbortController()
      const running = runApp(
        {
          cluster,
          log: createLogger({ level: 'trace', destination: { write: (line) => void (log += line) } }),
          mode: 'enforce',
          namespace: 'seamark',
          isPaused: false,
          records: {
            config: RecordsConfig.parse({
              enabled: true,
              owner: 'canary-test',
              dnsEndpoints: { enabled: true },
              providers: [subject.config],
            }),
            env: subject.env ?? {},
          },
        },
        stop.signal,
      )
      try {
        await create('first')
        await eventually('the first record', async () => published('first'))
        subject.faults.mode = 'down'
        const quiet = log.length
        await create('second')
        await eventually('a failure in the log', async () =>
          /ProviderUnavailable|OutcomeUnknown|TransferRefused|Stale/.test(log.slice(quiet)) ? true : undefined,
        )
      } finally {
        subject.faults.mode = 'pass'
        stop.abort()
        await running
        await cluster.close()
      }
      expectClean(log, subject.secrets)
      const objects = [
        await environment.client.list(DNSEndpoint),
        await environment.client.list(ConfigMap),
        await environment.client.list(Event),
      ]
      expect(JSON.stringify(objects)).toContain('second')
      expectClean(JSON.stringify(objects), subject.secrets)
    })

    it('are in no plan file, result or error, with the right ones and with wrong ones', async () => {
      const env = subject.env ?? {}
      const wrong = Object.fromEntries(
        Object.entries(env).map(([name]) => [
          name,
          Buffer.from(`wrong-${name}-of-32-octets-and-more`).toString('base64'),
        ]),
      )
      for (const secrets of [env, wrong]) {
        const provider = await createProvider(ProviderConfig.parse(subject.config), { env: secrets })
        const engine = createEngine({
          providers: [provider],
          owner: OWNER,
          store: memoryGuardStore(),
          killSwitch: createKillSwitch(),
          mode: 'enforce',
          types: ['A'],
        })
        const hidden = [
          ...subject.secrets,
          ...Object.entries(secrets).flatMap(([name, value]) => (name === 'AWS_ID' ? [] : [value])),
        ]
        const desired = [want(record('canary-plan', 'A', ['192.0.2.1']))]
        const sources = { present: new Set(desired.map(({ source }) => source.uid)), gone: new Set<string>() }
        const planned = await engine.plan({ desired, unusable: [], sources }, 'all', signal)
        const plans: readonly Plan[] = planned.plans
        expectClean(printPlanJson(plans) + printPlanText(plans) + printPlanMarkdown(plans), hidden)
        expectClean(everything(planned), hidden)
        for (const plan of plans) expectClean(everything(await engine.apply(plan, signal)), hidden)
        for (const mode of ['pass', 'down', 'refuse-writes'] as const) {
          subject.faults.mode = mode
          const change = [{ from: undefined, to: { ...record('canary-error', 'A', []), values: ['not-an-address'] } }]
          const errors = await Promise.allSettled([
            provider.zones(signal),
            provider.read({ id: 'nowhere.test.', name: 'nowhere.test.' }, 'all', signal),
            provider.apply(subject.zone, change, signal),
          ])
          expect(errors.some(({ status }) => status === 'rejected')).toBe(true)
          expectClean(everything(errors), hidden)
        }
        subject.faults.mode = 'pass'
        expectClean(everything(provider), hidden)
        await engine.close()
      }
    })
  })
}
