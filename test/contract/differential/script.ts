/**
 * The differential script: what clients do to a server in its life, right and wrong, as one list of requests. Later
 * steps build on earlier ones. The namespace `diff` and the group `diff.test` are its own.
 */
import { readRequests } from './requests.ts'
import { builtinSteps } from './script-builtin.ts'
import { customSteps } from './script-custom.ts'
import { objectSteps } from './script-objects.ts'
import type { Step } from './step.ts'

export const script: readonly Step[] = [...objectSteps, ...customSteps, ...builtinSteps, ...readRequests()]
