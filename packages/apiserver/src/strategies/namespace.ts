/**
 * Namespaces: created with the finalizer `kubernetes` in their spec, which delays their deletion until their content is
 * deleted; status.phase is Active or Terminating. Three of them cannot be deleted.
 */
import { checkLabel } from '../validation/names.ts'
import { type ApiObject, asStrings, getPath } from '../codec/object-shape.ts'
import type { Strategy } from '../resource/resource.ts'
import { forbidden } from '../exchange/status.ts'

const undeletable = new Set(['default', 'kube-system', 'kube-public'])
const nameLabel = 'kubernetes.io/metadata.name'

export const namespaceFinalizer = 'kubernetes'

function label(object: ApiObject): void {
  const { name = '', labels } = object.metadata
  if (name !== '') object.metadata.labels = { ...labels, [nameLabel]: name }
}

export function namespaceStrategy(common: Strategy): Strategy {
  return {
    ...common,
    checkName: checkLabel,
    applyDefaults: label,
    prepareForCreate(object) {
      const given = asStrings(getPath(object, 'spec', 'finalizers'))
      object['spec'] = { finalizers: given.includes(namespaceFinalizer) ? given : [...given, namespaceFinalizer] }
      object['status'] = { phase: 'Active' }
      label(object)
    },
    prepareForUpdate(object, old, context) {
      label(object)
      // Only the finalize subresource removes these.
      if (context.subresource !== 'finalize') object['spec'] = old['spec']
      if (context.subresource !== 'status') object['status'] = old['status']
    },
    beforeDelete(object) {
      const name = object.metadata.name ?? ''
      if (undeletable.has(name))
        throw forbidden({ group: '', plural: 'namespaces' }, name, 'this namespace may not be deleted')
    },
    whenMarked: (object) => ({
      ...object,
      status: { ...(object['status'] as object | undefined), phase: 'Terminating' },
    }),
    hasOtherFinalizers: (object) => asStrings(getPath(object, 'spec', 'finalizers')).length > 0,
  }
}
