import { expect, it } from 'vitest'
import { classOf } from './ingress-class.ts'

const CONTOUR = 'projectcontour.io/ingress.class'
const KUBERNETES = 'kubernetes.io/ingress.class'

it.each([
  { why: 'nothing', annotations: undefined, field: undefined, is: '' },
  { why: 'the field', annotations: {}, field: 'field', is: 'field' },
  { why: "Kubernetes' annotation before the field", annotations: { [KUBERNETES]: 'k' }, field: 'field', is: 'k' },
  { why: "Contour's annotation before both", annotations: { [KUBERNETES]: 'k', [CONTOUR]: 'c' }, field: 'f', is: 'c' },
  { why: 'an empty annotation is absent', annotations: { [CONTOUR]: '', [KUBERNETES]: '' }, field: 'f', is: 'f' },
])('$why', ({ annotations, field, is }) => {
  expect(classOf(annotations, field)).toBe(is)
})
