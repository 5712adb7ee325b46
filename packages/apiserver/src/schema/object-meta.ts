/** The schema of `metadata`, the same for every kind: the fields that pruning keeps and how its lists merge. */
import type { Schema } from './model.ts'

const STRING: Schema = { type: 'string' }
const INTEGER: Schema = { type: 'integer', format: 'int64' }
const BOOLEAN: Schema = { type: 'boolean' }
const TIME: Schema = { type: 'string', format: 'date-time' }
const STRINGS: Schema = { type: 'object', additionalProperties: { type: 'string' } }

export const OBJECT_META: Schema = {
  type: 'object',
  typeName: 'meta.v1.ObjectMeta',
  properties: {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    selfLink: STRING,
    uid: STRING,
    resourceVersion: STRING,
    generation: INTEGER,
    creationTimestamp: TIME,
    deletionTimestamp: { ...TIME, optional: true },
    deletionGracePeriodSeconds: { ...INTEGER, optional: true },
    labels: STRINGS,
    annotations: STRINGS,
    ownerReferences: {
      type: 'array',
      items: {
        type: 'object',
        typeName: 'meta.v1.OwnerReference',
        'x-kubernetes-map-type': 'atomic',
        properties: {
          apiVersion: { ...STRING, zero: '' },
          kind: { ...STRING, zero: '' },
          name: { ...STRING, zero: '' },
          uid: { ...STRING, zero: '' },
          controller: { ...BOOLEAN, optional: true },
          blockOwnerDeletion: { ...BOOLEAN, optional: true },
        },
        required: ['apiVersion', 'kind', 'name', 'uid'],
      },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'uid',
    },
    finalizers: {
      type: 'array',
      items: STRING,
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
    },
    managedFields: {
      type: 'array',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        typeName: 'meta.v1.ManagedFieldsEntry',
        properties: {
          manager: STRING,
          operation: STRING,
          apiVersion: STRING,
          time: TIME,
          fieldsType: STRING,
          fieldsV1: { type: 'object', typeName: 'meta.v1.FieldsV1', 'x-kubernetes-preserve-unknown-fields': true },
          subresource: STRING,
        },
      },
    },
  },
}
