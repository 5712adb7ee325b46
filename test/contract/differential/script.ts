/**
 * The differential script: valid and invalid requests of clients, as one list. Later steps depend on earlier ones. The
 * namespace `diff` and the group `diff.test` are reserved for it.
 */
import { readRequests } from './requests.ts'
import { builtinSteps } from './script-builtin.ts'
import { customSteps } from './script-custom.ts'
import { objectSteps } from './script-objects.ts'
import type { Step } from './step.ts'

export const script: readonly Step[] = [...objectSteps, ...customSteps, ...builtinSteps, ...readRequests()]
