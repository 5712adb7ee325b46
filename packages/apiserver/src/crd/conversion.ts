/** Conversion webhooks: convert objects of a custom resource between versions, with ConversionReview v1. */
import { randomUUID } from 'node:crypto'
import { type ApiObject, asStrings, getPath, isRecord } from '../codec/object-shape.ts'
import type { Converter } from '../resource/resource.ts'
import { internal } from '../exchange/status.ts'
import { postReview, readTarget, type ResolveService } from '../admission/webhook-client.ts'

const timeoutMs = 30_000

/** Undefined for conversion strategy None, which only changes apiVersion. */
export function readConverter(definition: ApiObject, resolveService: ResolveService): Converter | undefined {
  const conversion = getPath(definition, 'spec', 'conversion')
  if (getPath(conversion, 'strategy') !== 'Webhook') return undefined
  const kind = String(getPath(definition, 'spec', 'names', 'kind'))
  return {
    async convert(objects, apiVersion) {
      const otherVersions = objects.filter((object) => object.apiVersion !== apiVersion)
      if (otherVersions.length === 0) return [...objects]
      const converted = await callWebhook(otherVersions, apiVersion)
      const byObject = new Map(otherVersions.map((object, index) => [object, converted[index]]))
      return objects.map((object) => byObject.get(object) ?? object)
    },
  }

  async function callWebhook(objects: readonly ApiObject[], apiVersion: string): Promise<ApiObject[]> {
    const failed = (why: string): Error => internal(`conversion webhook for ${apiVersion}, Kind=${kind} failed: ${why}`)
    const uid = randomUUID()
    const versions = asStrings(getPath(conversion, 'webhook', 'conversionReviewVersions'))
    if (!versions.includes('v1')) throw failed('conversionReviewVersions has no v1')
    let response: unknown
    try {
      const target = readTarget(getPath(conversion, 'webhook', 'clientConfig'), resolveService)
      const review = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'ConversionReview',
        request: { uid, desiredAPIVersion: apiVersion, objects },
      }
      response = (await postReview(target, review, timeoutMs))['response']
    } catch (error) {
      throw failed(error instanceof Error ? error.message : String(error))
    }
    if (getPath(response, 'uid') !== uid)
      throw failed(`expected response.uid=${uid}, got ${String(getPath(response, 'uid'))}`)
    if (getPath(response, 'result', 'status') !== 'Success')
      throw failed(String(getPath(response, 'result', 'message') ?? 'no reason given'))
    const converted = getPath(response, 'convertedObjects')
    if (!Array.isArray(converted) || converted.length !== objects.length)
      throw failed(
        `expected ${objects.length} converted objects, got ${Array.isArray(converted) ? converted.length : 0}`,
      )
    return converted.map((object: unknown, index) => {
      const original = objects[index] as ApiObject
      const problem = findProblem(object, original, apiVersion)
      if (problem !== undefined) throw failed(`invalid converted object at index ${index}: ${problem}`)
      return restore(object as ApiObject, original)
    })
  }

  /** A webhook may change spec, status, labels and annotations, but no other metadata. */
  function restore(converted: ApiObject, original: ApiObject): ApiObject {
    const { labels, annotations } = converted.metadata
    const metadata = { ...original.metadata }
    delete metadata.labels
    delete metadata.annotations
    return {
      ...converted,
      metadata: {
        ...metadata,
        ...(labels !== undefined && { labels }),
        ...(annotations !== undefined && { annotations }),
      },
    }
  }
}

/** Why an object is not the result of a conversion, as in kube-apiserver; undefined if it is. */
function findProblem(converted: unknown, original: ApiObject, apiVersion: string): string | undefined {
  if (!isRecord(converted) || !isRecord(converted['metadata'])) return 'it is no object'
  if (converted['apiVersion'] !== apiVersion)
    return `invalid groupVersion (expected ${apiVersion}, received ${String(converted['apiVersion'])})`
  if (converted['kind'] !== original.kind)
    return `invalid kind (expected ${String(original.kind)}, received ${String(converted['kind'])})`
  for (const [field, name] of [
    ['name', 'name'],
    ['namespace', 'namespace'],
    ['uid', 'UID'],
  ] as const) {
    const [before, after] = [original.metadata[field] ?? '', converted['metadata'][field] ?? '']
    if (before !== after) return `must have the same ${name}: ${before} != ${String(after)}`
  }
  return undefined
}
