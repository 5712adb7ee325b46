/**
 * Ten thousand invalid requests: each gets the error of its class, the process stays up, its memory
 * flat, its prototypes clean. A few of every class go over HTTPS, to the embedded server and to a real one.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createApiServer, type ApiServer } from '@seamark/apiserver'
import { needs } from '@seamark/kit'
import { ControlPlane } from '@seamark/kube/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rawClient } from '../../contract/differential/raw-client.ts'
import { crd, rope } from './bad-requests/crd.ts'
import type { BadRequest } from './bad-requests/bad-request.ts'
import { badRequest, samples } from './bad-requests/generate.ts'
import { startEmbeddedServer } from './embedded-server.ts'

const runs = 10_000
const growthLimitBytes = 32 * 2 ** 20
const isolated = { name: 'admin', groups: ['system:masters'] }

interface Answer {
  status: number
  type: string
  text: string
}

type Send = (request: Omit<BadRequest, 'what' | 'codes'>) => Promise<Answer>

describe('a bad request', () => {
  it(`gets the error of its class, ${runs} times`, { timeout: 300_000 }, async () => {
    const server = createApiServer({ anonymous: 'refused', authorization: 'RBAC' })
    const send = sendInProcess(server)
    await prepare(send)
    let count = 0
    let heapBefore = 0
    await fc.assert(
      fc.asyncProperty(badRequest, async (request) => {
        checkAnswer(request, await send(request))
        if (++count === runs / 5) heapBefore = heapAfterCollection()
      }),
      { numRuns: runs, endOnFailure: true },
    )
    expect(count).toBe(runs)
    expect(heapAfterCollection() - heapBefore).toBeLessThan(growthLimitBytes)
    expect(Object.keys(Object.prototype)).toEqual([])
    expect((await send({ method: 'GET', path: '/readyz', headers: {} })).status).toBe(200)
    await server.close()
  })

  it('cannot pollute what it is merged into, and is an ordinary key where keys are free', async () => {
    const server = createApiServer()
    const send = sendInProcess(server)
    await prepare(send)
    const path = '/api/v1/namespaces/default/configmaps'
    const body = '{"metadata":{"name":"keys"},"data":{"__proto__":"p","constructor":"c"}}'
    const headers = { 'content-type': 'application/json' }
    expect((await send({ method: 'POST', path, headers, body })).status).toBe(201)
    for (const type of ['merge-patch', 'strategic-merge-patch', 'json-patch', 'apply-patch']) {
      const patch = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'keys' }, __proto__: undefined }
      const text = JSON.stringify(patch).replace(/\}$/, ',"__proto__":{"polluted":1},"data":{"__proto__":"q"}}')
      const operations = '[{"op":"add","path":"/data/__proto__","value":"q"}]'
      await send({
        method: 'PATCH',
        path: `${path}/keys?fieldManager=m&force=${type === 'apply-patch'}`.replace('&force=false', ''),
        headers: { 'content-type': `application/${type}+${type === 'apply-patch' ? 'yaml' : 'json'}` },
        body: type === 'json-patch' ? operations : text,
      })
      const { text: stored } = await send({ method: 'GET', path: `${path}/keys`, headers: {} })
      expect(stored, type).toContain('"__proto__":"q"')
      expect(stored, type).toContain('"constructor":"c"')
      expect(({} as Record<string, unknown>)['polluted'], type).toBeUndefined()
    }
    await server.close()
  })
})

const servers = [
  { name: 'the embedded server over HTTPS', isSkipped: false, start: startEmbeddedServer },
  { name: 'a real kube-apiserver', isSkipped: !needs('kube-apiserver', 'etcd'), start: startReal },
]

describe.each(servers)('$name', ({ start, isSkipped }) => {
  it.skipIf(isSkipped)('answers samples of every class with the same codes', async () => {
    const target = await start()
    const send = sendHttps(target.kubeconfig)
    try {
      await prepare(send)
      const wrong: string[] = []
      for (const request of samples(5, 1)) {
        const answer = await send(request)
        try {
          checkAnswer(request, answer)
        } catch (error) {
          wrong.push(String(error))
        }
      }
      expect(wrong).toEqual([])
    } finally {
      await target.stop()
    }
  })
})

function checkAnswer({ what, method, path, body, codes }: BadRequest, { status, type, text }: Answer): void {
  const sent = `${what}: ${method} ${path} ${(body ?? '').slice(0, 200)} → ${status} ${text.slice(0, 300)}`
  if (!codes.includes(status)) throw new Error(`not ${codes.join(' or ')}: ${sent}`)
  if (!type.startsWith('application/json')) {
    // Only a path that leads nowhere is answered in plain text, by a real server too.
    if (![400, 404].includes(status) || method !== 'GET') throw new Error(`no Status: ${sent}`)
    return
  }
  const answer = JSON.parse(text) as { kind?: string; status?: string; code?: number; message?: string }
  const isStatus = answer.kind === 'Status' && answer.status === 'Failure' && answer.code === status
  if (!isStatus || (answer.message ?? '') === '') throw new Error(`not a Status: ${sent}`)
}

async function prepare(send: Send): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const ropes = '/apis/bad.test/v1/namespaces/default/ropes'
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const there = JSON.stringify({ metadata: { name: 'there' }, data: { a: '1' } })
  await send({ method: 'POST', path: definitions, headers, body: JSON.stringify(crd('ropes.bad.test')) })
  await expect.poll(async () => (await send({ method: 'GET', path: ropes, headers: {} })).status).toBe(200)
  await send({ method: 'POST', path: '/api/v1/namespaces/default/configmaps', headers, body: there })
  expect((await send({ method: 'POST', path: ropes, headers, body: rope({}, 'there') })).status).toBe(201)
}

function sendInProcess(server: ApiServer): Send {
  return async ({ method, path, headers, body = '', isAnonymous }) => {
    const [pathname = '', query = ''] = path.split('?', 2)
    const response = await server.handle({
      method,
      path: pathname,
      query: new URLSearchParams(query),
      headers,
      body: Buffer.from(body),
      ...(isAnonymous !== true && { identity: isolated }),
    })
    if (response.kind === 'stream') throw new Error(`${method} ${path} opened a stream`)
    const type = String(response.headers['content-type'])
    return { status: response.status, type, text: Buffer.concat(response.body).toString() }
  }
}

function sendHttps(kubeconfig: string): Send {
  const admin = rawClient(kubeconfig)
  const anonymous = rawClient(kubeconfig, true)
  return async ({ isAnonymous, ...request }) => {
    const { status, headers, text } = await (isAnonymous === true ? anonymous : admin).send(request)
    return { status, type: headers['content-type'] ?? '', text }
  }
}

async function startReal() {
  const plane = await ControlPlane.start()
  return { kubeconfig: plane.kubeconfig(), stop: async () => plane.stop() }
}

let collect: (() => void) | undefined

function heapAfterCollection(): number {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  collect()
  return process.memoryUsage().heapUsed
}
