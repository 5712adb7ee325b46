/**
 * Decoding and validation of custom resources against a real kube-apiserver: pruning, defaults and error messages must
 * be equal for the same bodies. SEAMARK_DIFFERENTIAL_RUNS sets the number of bodies (times ten).
 */
import { ControlPlane } from '@seamark/kube/testing'
import { type Cause, type CompiledSchema, prepareSchema } from '@seamark/apiserver/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../kit/index.ts'
import { GADGET_CRD, GADGET_SCHEMA, gadgetSpec } from './algorithms/gadget.ts'

const runs = Number(process.env['SEAMARK_DIFFERENTIAL_RUNS'] ?? 20) * 10
const collection = '/apis/differential.example/v1/namespaces/default/gadgets'

interface Answer {
  status: number
  spec?: unknown
  causes?: string[]
}

describe.skipIf(!needs('kube-apiserver', 'etcd'))('validation of custom resources', () => {
  let plane: ControlPlane
  let schema: CompiledSchema

  beforeAll(async () => {
    plane = await ControlPlane.start({ crds: [GADGET_CRD] })
    schema = await prepareSchema(GADGET_SCHEMA)
  })

  afterAll(async () => {
    await plane?.stop()
  })

  it('prunes, defaults and refuses as the real server does', { timeout: 60_000 + runs * 100 }, async () => {
    expect(schema.warnings).toEqual([])
    await fc.assert(
      fc.asyncProperty(fc.option(gadgetSpec, { freq: 30 }), async (spec) => {
        const body = {
          apiVersion: 'differential.example/v1',
          kind: 'Gadget',
          metadata: { name: 'subject' },
          ...(spec !== null && { spec }),
        }
        expect(validateEmbedded(schema, body)).toEqual(await validateOnServer(plane, body))
      }),
      { numRuns: runs, endOnFailure: runs > 500 },
    )
  })
})

function validateEmbedded(schema: CompiledSchema, body: object): Answer {
  const object = JSON.parse(JSON.stringify(body)) as { spec?: unknown }
  schema.prune(object)
  schema.applyDefaults(object)
  const causes = schema.validate(object)
  return causes.length === 0 ? { status: 201, spec: object.spec } : { status: 422, causes: texts(causes) }
}

async function validateOnServer(plane: ControlPlane, body: object): Promise<Answer> {
  const reply = await plane.request('POST', `${collection}?dryRun=All`, body)
  if (reply.status === 201) return { status: 201, spec: (reply.body as { spec?: unknown }).spec }
  const { details } = reply.body as { details?: { causes?: Cause[] } }
  return { status: reply.status, causes: texts(details?.causes ?? []) }
}

function texts(causes: readonly Cause[]): string[] {
  return causes.map(({ field, reason, message }) => JSON.stringify({ field, reason, message })).toSorted()
}
