import type { Client } from '@seamark/kube'
import { expect, it } from 'vitest'
import { type Question, Sessions } from './rights.ts'

/** An API server with one token, and a list of what its holder may do. */
function fakeServer() {
  const asked: string[] = []
  const server = {
    asked,
    isDown: false,
    token: 'good',
    allowed: new Set<string>(),
    client: {
      create: async (kind: { kind: string }, object: { spec: Record<string, unknown> }) => {
        if (server.isDown) throw new Error('down')
        if (kind.kind === 'TokenReview') {
          asked.push('token')
          return {
            status: object.spec['token'] === server.token ? { authenticated: true, user: { username: 'ann' } } : {},
          }
        }
        const { verb, resource, namespace = '*' } = object.spec['resourceAttributes'] as Record<string, string>
        const text = `${verb} ${resource} ${namespace}`
        asked.push(text)
        return { status: { allowed: server.allowed.has(text) } }
      },
    } as unknown as Client,
  }
  return server
}

const IN_RED: Question = { verb: 'list', resource: 'dnsendpoints.externaldns.k8s.io', namespace: 'red' }
const IN_BLUE: Question = { ...IN_RED, namespace: 'blue' }
const never = new AbortController().signal

it('a right is asked for once in 60 s, first for every namespace', async () => {
  const server = fakeServer()
  server.allowed.add('list dnsendpoints red')
  let now = 0
  const sessions = new Sessions(server.client, () => now)
  const rights = async () => (await sessions.of('good'))?.ensure([IN_RED, IN_BLUE], never)
  const first = await rights()
  expect([first?.may(IN_RED), first?.may(IN_BLUE)]).toEqual([true, false])
  const asked = ['token', 'list dnsendpoints *', 'list dnsendpoints red', 'list dnsendpoints blue']
  expect(server.asked).toEqual(asked)
  now = 59_000
  await rights()
  expect(server.asked).toEqual(asked)
  now = 60_000
  server.allowed.clear()
  expect((await rights())?.may(IN_RED)).toBe(false)
  expect(server.asked).toEqual([...asked, ...asked])
})

it('who may read all namespaces is not asked about each, and the same rights have the same key', async () => {
  const server = fakeServer()
  server.allowed.add('list dnsendpoints *')
  const session = await new Sessions(server.client, () => 0).of('good')
  const rights = await session?.ensure([IN_RED, IN_BLUE], never)
  expect([rights?.may(IN_RED), rights?.may(IN_BLUE)]).toEqual([true, true])
  expect(server.asked).toEqual(['token', 'list dnsendpoints *'])
  expect((await session?.ensure([IN_RED, IN_BLUE], never))?.key).toBe(rights?.key)
})

it('a token that expires is refused within 60 s, and one that never was valid is not asked about each time', async () => {
  const server = fakeServer()
  let now = 0
  const sessions = new Sessions(server.client, () => now)
  expect(await sessions.of('good')).toBeDefined()
  expect(await sessions.of('bad')).toBeUndefined()
  expect(await sessions.of('bad')).toBeUndefined()
  expect(server.asked).toEqual(['token', 'token'])
  server.token = 'another'
  now = 60_000
  expect(await sessions.of('good')).toBeUndefined()
})

it('while the API server does not answer, nobody is let in whose token is not known', async () => {
  const server = fakeServer()
  server.isDown = true
  const sessions = new Sessions(server.client, () => 0)
  await expect(sessions.of('good')).rejects.toThrow('down')
  server.isDown = false
  expect(await sessions.of('good')).toBeDefined()
  expect(await sessions.of('')).toBeUndefined()
})
