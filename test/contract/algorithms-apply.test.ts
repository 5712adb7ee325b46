/**
 * Server-side apply and update tracking against a real kube-apiserver: random scripts of writes by several managers
 * must produce the same object, owners and conflicts on both. SEAMARK_DIFFERENTIAL_RUNS sets the number of scripts.
 */
import type { Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { compileSchema } from '@seamark/apiserver/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { needs } from '../kit/index.ts'
import { SUBJECTS, builtinScript } from './algorithms/builtin-kinds.ts'
import { ModelServer } from './algorithms/model-server.ts'
import type { ModelKind, Step } from './algorithms/model-server.ts'
import { expectSame } from './algorithms/response-comparison.ts'
import { RealServer } from './algorithms/real-server.ts'
import { WIDGET_CRD, WIDGET_SCHEMA, widgetScript } from './algorithms/widget.ts'

const runs = Number(process.env['SEAMARK_DIFFERENTIAL_RUNS'] ?? 20)
const compiled = compileSchema(WIDGET_SCHEMA)

const widgets: ModelKind = {
  apiVersion: 'differential.example/v1',
  kind: 'Widget',
  schema: WIDGET_SCHEMA,
  hasStatus: true,
  statusResets: ['metadata', 'spec'],
  decode(object: Obj): Obj {
    compiled.prune(object)
    compiled.applyDefaults(object)
    return object
  },
  afterApply(object: Obj): Obj {
    compiled.applyDefaults(object)
    return object
  },
  validate: (object, old, part) => compiled.validate(object, old, part),
}

const WIDGET = {
  apiVersion: 'differential.example/v1',
  kind: 'Widget',
  metadata: { name: 'subject', namespace: 'default' },
}

/** An apply that sets the status to null is rejected, with an error whose path begins at the status. */
const EMPTIED_STATUS: Step[] = [
  { kind: 'create', manager: 'one', body: WIDGET },
  {
    kind: 'apply-status',
    manager: 'one',
    force: false,
    body: { ...WIDGET, status: { conditions: [{ type: 'a', status: 'a' }] } },
  },
  { kind: 'apply-status', manager: 'one', force: false, body: { ...WIDGET, status: {} } },
]

describe.skipIf(!needs('kube-apiserver', 'etcd'))('apply and update tracking', () => {
  let plane: ControlPlane

  beforeAll(async () => {
    plane = await ControlPlane.start({ crds: [WIDGET_CRD] })
  })

  afterAll(async () => {
    await plane?.stop()
  })

  it('leave the same object and owners as the real server', { timeout: 60_000 + runs * 1_000 }, async () => {
    const name = 'subject'
    await fc.assert(
      fc.asyncProperty(widgetScript(name), async (script) => {
        const real = new RealServer(plane, '/apis/differential.example/v1/namespaces/default/widgets', name)
        const model = new ModelServer(widgets)
        try {
          for (const step of script) expectSame(step, model.play(step), await real.play(step))
        } finally {
          await plane.request(
            'PATCH',
            `/apis/differential.example/v1/namespaces/default/widgets/${name}`,
            { metadata: { finalizers: null } },
            { type: 'application/merge-patch+json' },
          )
          await real.remove()
        }
      }),
      { numRuns: runs, endOnFailure: runs > 50, examples: [[EMPTIED_STATUS]] },
    )
  })

  it.each(Object.entries(SUBJECTS))(
    'leave the same %s and owners as the real server',
    { timeout: 60_000 + runs * 1_000 },
    async (_, subject) => {
      await fc.assert(
        fc.asyncProperty(builtinScript(subject), async (script) => {
          const real = new RealServer(plane, subject.collection, 'subject')
          const model = new ModelServer(subject.model)
          try {
            for (const step of script) expectSame(step, model.play(step), await real.play(step))
          } finally {
            await real.remove()
          }
        }),
        { numRuns: runs, endOnFailure: runs > 50 },
      )
    },
  )
})
