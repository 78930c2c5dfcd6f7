"""The rules of fabric-fix, one module each; `fabric_fix.registry` finds them by walking this package."""
