/**
 * Eviction and binding of pods: a delete, and the assignment of a node. Requests that a kubelet would serve (logs,
 * exec, port-forward) are rejected as kube-apiserver rejects them for a pod without a kubelet.
 */
import { type Call, readWriteOptions } from './call.ts'
import { decodeBody } from '../codec/decode.ts'
import { deleteStored } from './delete.ts'
import { type ApiResponse, jsonResponse } from '../exchange/exchange.ts'
import { builtinMediaTypes } from '../exchange/negotiate.ts'
import { getPath } from '../codec/object-shape.ts'
import { badRequest, conflict, internal, notFound } from '../exchange/status.ts'
import { updateObject } from './write.ts'

const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }

async function readBody(call: Call): Promise<unknown> {
  const { body, headers } = call.request
  try {
    return (await decodeBody(body, headers['content-type'], builtinMediaTypes)).value
  } catch (error) {
    throw error instanceof SyntaxError ? badRequest(error.message) : error
  }
}

export async function serveEviction(call: Call): Promise<ApiResponse> {
  const eviction = await readBody(call)
  const uid = getPath(eviction, 'deleteOptions', 'preconditions', 'uid')
  const grace = getPath(eviction, 'deleteOptions', 'gracePeriodSeconds')
  const { info } = call
  await deleteStored(call, `${info.namespace}/${info.name}`, {
    isDryRun: call.request.query.get('dryRun') === 'All',
    propagationPolicy: undefined,
    gracePeriodSeconds: typeof grace === 'number' ? grace : undefined,
    uid: typeof uid === 'string' ? uid : undefined,
    resourceVersion: undefined,
  })
  return jsonResponse(201, success)
}

export function serveKubelet(call: Call): ApiResponse {
  const { resource, info } = call
  const stored = resource.collection.get(`${info.namespace}/${info.name}`)
  if (stored === undefined) throw notFound(resource, info.name)
  const node = getPath(stored.object, 'spec', 'nodeName') ?? ''
  if (node === '' && info.subresource === 'log') return { kind: 'whole', status: 204, headers: {}, body: [] }
  if (node === '') throw badRequest(`pod ${info.name} does not have a host assigned`)
  throw internal(`no kubelet runs on node ${JSON.stringify(node)} of this API server`)
}

export async function serveBinding(call: Call): Promise<ApiResponse> {
  const binding = await readBody(call)
  if (getPath(binding, 'metadata', 'name') !== call.info.name)
    throw badRequest('name in URL does not match name in Binding object')
  const node = getPath(binding, 'target', 'name')
  if (typeof node !== 'string' || node === '') throw badRequest('binding has no target')
  await updateObject(
    call,
    {
      build(old) {
        const present = getPath(old, 'spec', 'nodeName') ?? ''
        if (present !== '')
          throw conflict(
            call.resource,
            call.info.name,
            `pod ${call.info.name} is already assigned to node ${JSON.stringify(present)}`,
          )
        return { ...old, spec: { ...(old['spec'] as object), nodeName: node } }
      },
    },
    readWriteOptions(call, 'create'),
  )
  return jsonResponse(201, success)
}
