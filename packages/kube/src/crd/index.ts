/** `@seamark/kube/crd`: kinds of one's own with schema and CRD. An entry of its own, so that others do not load zod. */
export {
  conditionsSchema,
  customResourceDefinition,
  defineKind,
  schemaOf,
  type CrdOptions,
  type DefinedKind,
  type DefinedObject,
  type KindDefinition,
  type ObjectOf,
  type PrinterColumn,
  type ValidationRule,
} from './kind-definition.ts'
export { structuralSchema, type StructuralSchema } from './structural-schema.ts'
