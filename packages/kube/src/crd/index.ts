/**
 * `@seamark/kube/crd`: custom kinds with schema and CRD. A separate entry point, so that other programs do not load
 * zod.
 */
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
