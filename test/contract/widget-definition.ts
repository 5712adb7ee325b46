/** The custom resource that the contract cases use. */
export function widgetDefinition(group: string): object {
  const spec = {
    type: 'object',
    required: ['size'],
    properties: {
      size: { type: 'integer', minimum: 0, maximum: 10 },
      limit: { type: 'integer' },
      color: { type: 'string', enum: ['red', 'blue'], default: 'red' },
      code: { type: 'string', pattern: '^[A-Z]+$', maxLength: 4 },
      fixed: {
        type: 'string',
        'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed cannot change' }],
      },
      port: { 'x-kubernetes-int-or-string': true },
      free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      steps: { type: 'array', items: { type: 'string' } },
      parts: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          required: ['name'],
          properties: { name: { type: 'string' }, value: { type: 'string' } },
        },
      },
    },
    'x-kubernetes-validations': [
      { rule: '!has(self.limit) || self.size <= self.limit', message: 'size must not exceed limit' },
    ],
  }
  const status = {
    type: 'object',
    properties: { size: { type: 'integer' }, selector: { type: 'string' }, ok: { type: 'boolean' } },
  }
  const loose = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['all'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.size',
              statusReplicasPath: '.status.size',
              labelSelectorPath: '.status.selector',
            },
          },
          selectableFields: [{ jsonPath: '.spec.color' }],
          additionalPrinterColumns: [
            { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
            { name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 },
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
        },
        { name: 'v1beta1', served: true, storage: false, deprecated: true, schema: loose },
        { name: 'v1alpha1', served: false, storage: false, schema: loose },
      ],
    },
  }
}
