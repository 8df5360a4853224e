// The copy button of a console block copies the commands only, without `$` and what they print.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-clipboard-target]");
  if (!button) return;
  const code = document.querySelector(button.dataset.clipboardTarget);
  const lines = code.innerText.split("\n");
  if (!lines.some((line) => line.startsWith("$ "))) return;
  const commands = [];
  let open = false;
  for (const line of lines) {
    if (line.startsWith("$ ")) commands.push(line.slice(2));
    else if (open) commands.push(line);
    open = (line.startsWith("$ ") || open) && line.endsWith("\\");
  }
  event.stopImmediatePropagation();
  event.preventDefault();
  navigator.clipboard.writeText(commands.join("\n"));
  button.title = "copied";
}, true);
