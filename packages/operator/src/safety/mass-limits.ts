/**
 * The limits of changes at once. What happens above them is decided where they are used: held until an approval (publish,
 * wildcard, fleet, the breakers of records), or confirmed by a second read (the caches of `kube`, wildcard, the sources of records).
 */
export { DEFAULT_MASS_LIMITS, isMassChange, type MassLimits } from '@seamark/kube'
